//! Damage that changes nothing of what a log says: after it the verdict has to be the same.
//!
//! The wording of libc's errors in German and French is that of its own catalogues (Debian's
//! `libc-l10n` 2.36); it is used only where the line also holds the number of the error.

use crate::host::Content;
use crate::text;

use super::stream::Stream;

/// A way to damage a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutation {
    /// What stands before a colon is painted, and every line ends in an erasure.
    Colours,
    /// Lines end in CR LF.
    CarriageReturns,
    /// Lines begin with `[rank3]: `.
    RankTags,
    /// Lines begin with `3: `, as `srun --label` prints.
    TaskLabels,
    /// Lines begin with a time.
    Timestamps,
    /// Half of what stands before the line that tells the cause is lost.
    LostHead,
    /// A second rank, which is well, writes in between.
    HealthyRank,
    /// Forty lines of work follow.
    MoreWork,
    /// Megabytes of work come first.
    PaddingBefore,
    /// Megabytes of work come first, and more follow.
    PaddingAround,
    /// libc speaks German.
    German,
    /// libc speaks French.
    French,
}

impl Mutation {
    /// Every one with its name.
    pub const ALL: [(Self, &'static str); 12] = [
        (Self::Colours, "colours"),
        (Self::CarriageReturns, "CR LF"),
        (Self::RankTags, "[rank3]: tags"),
        (Self::TaskLabels, "3: labels"),
        (Self::Timestamps, "timestamps"),
        (Self::LostHead, "head lost"),
        (Self::HealthyRank, "healthy rank between"),
        (Self::MoreWork, "40 lines of work after"),
        (Self::PaddingBefore, "padding before"),
        (Self::PaddingAround, "padding around"),
        (Self::German, "German libc"),
        (Self::French, "French libc"),
    ];

    /// Whether lines of work follow the end of the log.
    pub fn adds_work(self) -> bool {
        matches!(self, Self::MoreWork | Self::PaddingAround)
    }

    /// The log after it; `None` where it would change nothing. `root` is the line that tells the
    /// cause, empty where none does; `padding` is in bytes, for either side.
    pub fn apply(self, log: &str, root: &str, padding: u64) -> Option<Box<dyn Content>> {
        if log.is_empty() {
            return None;
        }
        let text = match self {
            Self::PaddingBefore => return Some(padded(log, padding, 0)),
            Self::PaddingAround => return Some(padded(log, padding, padding)),
            Self::Colours => each_line(log, |_, line| match line.split_once(':') {
                Some((head, rest)) => format!("\x1b[1;31m{head}\x1b[0m:{rest}\x1b[K"),
                None => format!("\x1b[2m{line}\x1b[0m\x1b[K"),
            }),
            Self::CarriageReturns => log.replace("\r\n", "\n").replace('\n', "\r\n"),
            Self::RankTags => each_line(log, |_, line| labelled("[rank3]: ", line)),
            Self::TaskLabels => each_line(log, |_, line| labelled("3: ", line)),
            Self::Timestamps => each_line(log, |number, line| {
                let (minute, second) = (number / 60 % 60, number % 60);
                format!("2026-11-30T10:{minute:02}:{second:02}.250Z {line}")
            }),
            Self::LostHead => lost_head(log, root),
            Self::HealthyRank => each_line(log, |number, line| {
                format!(
                    "{}\n[rank901]: step {number} loss 0.4{number:03}",
                    labelled("[rank0]: ", line)
                )
            }),
            Self::MoreWork => {
                let work: Vec<String> =
                    (0..40).map(|step| format!("\nstep {step} loss 0.3{step:02}")).collect();
                format!("{}{}\n", log.trim_end_matches('\n'), work.concat())
            }
            Self::German => translated(log, |row| row.2),
            Self::French => translated(log, |row| row.3),
        };
        (text != log).then(|| -> Box<dyn Content> { Box::new(text.into_bytes()) })
    }
}

fn padded(log: &str, before: u64, after: u64) -> Box<dyn Content> {
    Box::new(Stream::padded(log.as_bytes().to_vec(), before, after))
}

fn each_line(log: &str, change: impl Fn(usize, &str) -> String) -> String {
    let mut changed = String::with_capacity(log.len() * 2);
    for (number, line) in log.lines().enumerate() {
        changed.push_str(&change(number, line));
        changed.push('\n');
    }
    changed
}

/// A launcher labels what the tasks write, not its own messages.
fn labelled(label: &str, line: &str) -> String {
    let launcher = line.starts_with("slurmstepd") || line.starts_with("srun: ");
    if launcher { line.to_owned() } else { format!("{label}{line}") }
}

/// Cut in the middle of a line, as a log that was rotated begins. Of a log that does not hold the
/// line that tells, half is lost.
fn lost_head(log: &str, root: &str) -> String {
    let mut begin = 0;
    let mut line = log.len();
    for text in log.split_inclusive('\n') {
        if !root.is_empty() && text::clean_line(text.as_bytes()).contains(root) {
            line = begin;
            break;
        }
        begin += text.len();
    }
    let mut cut = line / 2;
    while !log.is_char_boundary(cut) {
        cut -= 1;
    }
    log[cut..].to_owned()
}

/// Numbers of errors and their texts in English, German and French.
const ERRORS: [(u32, &str, &str, &str); 12] = [
    (
        2,
        "No such file or directory",
        "Datei oder Verzeichnis nicht gefunden",
        "Aucun fichier ou dossier de ce type",
    ),
    (5, "Input/output error", "Eingabe-/Ausgabefehler", "Erreur d'entrée/sortie"),
    (
        11,
        "Resource temporarily unavailable",
        "Die Ressource ist zur Zeit nicht verfügbar",
        "Ressource temporairement non disponible",
    ),
    (
        12,
        "Cannot allocate memory",
        "Nicht genügend Hauptspeicher verfügbar",
        "Ne peut allouer de la mémoire",
    ),
    (13, "Permission denied", "Keine Berechtigung", "Permission non accordée"),
    (24, "Too many open files", "Zu viele offene Dateien", "Trop de fichiers ouverts"),
    (
        28,
        "No space left on device",
        "Auf dem Gerät ist kein Speicherplatz mehr verfügbar",
        "Aucun espace disponible sur le périphérique",
    ),
    (
        30,
        "Read-only file system",
        "Das Dateisystem ist nur lesbar",
        "Système de fichiers accessible en lecture seulement",
    ),
    (98, "Address already in use", "Die Adresse wird bereits verwendet", "Adresse déjà utilisée"),
    (111, "Connection refused", "Verbindungsaufbau abgelehnt", "Connexion refusée"),
    (
        113,
        "No route to host",
        "Keine Route zum Zielrechner",
        "Aucun chemin d'accès pour atteindre l'hôte cible",
    ),
    (
        122,
        "Disk quota exceeded",
        "Der zugewiesene Plattenplatz (Quota) ist überschritten",
        "Débordement du quota d'espace disque",
    ),
];

fn translated(
    log: &str,
    wording: impl Fn(&(u32, &str, &'static str, &'static str)) -> &'static str,
) -> String {
    let line = |line: &str| {
        let mut line = line.to_owned();
        for row in &ERRORS {
            let (number, english, ..) = row;
            let numbered = [
                format!("[Errno {number}]"),
                format!("errno: {number} "),
                format!("errno = {number},"),
                format!("({number})"),
            ];
            if numbered.iter().any(|form| line.contains(form)) {
                line = line.replace(english, wording(row));
            }
        }
        line
    };
    log.split_inclusive('\n').map(line).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn after(mutation: Mutation, log: &str, root: &str) -> String {
        let content = mutation.apply(log, root, 128).expect("it changes something");
        String::from_utf8(content.read_all(1 << 20).expect("memory")).expect("text")
    }

    #[test]
    fn what_it_does_to_a_log() {
        let log = "load\nOSError: [Errno 2] No such file or directory: 'a'\nsrun: error: x\n";
        assert_eq!(
            after(Mutation::RankTags, log, ""),
            "[rank3]: load\n[rank3]: OSError: [Errno 2] No such file or directory: 'a'\nsrun: error: x\n"
        );
        assert_eq!(
            after(Mutation::German, log, "").lines().nth(1),
            Some("OSError: [Errno 2] Datei oder Verzeichnis nicht gefunden: 'a'")
        );
        assert!(Mutation::French.apply("No such file or directory\n", "", 0).is_none());
        assert_eq!(
            after(Mutation::LostHead, "0123456789\nroot\nend\n", "root"),
            "56789\nroot\nend\n"
        );
        assert_eq!(after(Mutation::CarriageReturns, "a\r\nb\n", ""), "a\r\nb\r\n");
        assert!(after(Mutation::MoreWork, log, "").ends_with("step 39 loss 0.339\n"));
        assert_eq!(
            after(Mutation::HealthyRank, "a\n", ""),
            "[rank0]: a\n[rank901]: step 0 loss 0.4000\n"
        );
    }

    proptest! {
        #[test]
        fn the_line_that_tells_survives_a_lost_head(
            head in "[a-zé\n]{0,80}", root in "[A-Z]{3,9}", tail in "[a-z\n]{0,40}"
        ) {
            let log = format!("{head}\n{root}\n{tail}");
            prop_assert!(lost_head(&log, &root).contains(&root));
        }

        #[test]
        fn any_text_is_damaged(log in any::<String>(), root in any::<String>()) {
            for (mutation, _) in Mutation::ALL {
                mutation.apply(&log, &root, 100);
            }
        }
    }
}
