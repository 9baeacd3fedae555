//! Errors of the C library and of the shell, on nodes that speak another language.
//!
//! Decides only which English message a German, French or Spanish one stands for, so that the rules
//! are written once, in English. What programs say in catalogues of their own stays as it is. The
//! wording is that of glibc 2.36 and bash 5.2, with an older one of glibc beside it where they differ.

/// A message as it is printed, and the English one; a longer one before what it begins with.
const MESSAGES: [(&str, &str); 26] = [
    ("Datei oder Verzeichnis nicht gefunden", "No such file or directory"),
    ("Keine Berechtigung", "Permission denied"),
    ("Auf dem Gerät ist kein Speicherplatz mehr verfügbar", "No space left on device"),
    ("Der zugewiesene Plattenplatz (Quota) ist überschritten", "Disk quota exceeded"),
    ("Nicht genügend Hauptspeicher verfügbar", "Cannot allocate memory"),
    ("Speicherzugriffsfehler", "Segmentation fault"),
    ("Adressierungsfehler (Speicherabzug geschrieben)", "Segmentation fault (core dumped)"),
    ("(Speicherabzug geschrieben)", "(core dumped)"),
    ("Kommando nicht gefunden.", "command not found"),
    ("Aucun fichier ou dossier de ce type", "No such file or directory"),
    ("Aucun fichier ou répertoire de ce type", "No such file or directory"),
    ("Permission non accordée", "Permission denied"),
    ("Aucun espace disponible sur le périphérique", "No space left on device"),
    ("Débordement du quota d'espace disque", "Disk quota exceeded"),
    ("Erreur de segmentation", "Segmentation fault"),
    ("Trop de fichiers ouverts", "Too many open files"),
    ("Système de fichiers accessible en lecture seulement", "Read-only file system"),
    ("Connexion refusée", "Connection refused"),
    ("commande introuvable", "command not found"),
    ("No existe el fichero o el directorio", "No such file or directory"),
    ("No existe el archivo o el directorio", "No such file or directory"),
    ("Permiso denegado", "Permission denied"),
    ("No queda espacio en el dispositivo", "No space left on device"),
    ("Violación de segmento", "Segmentation fault"),
    ("Demasiados ficheros abiertos", "Too many open files"),
    ("Sistema de ficheros de sólo lectura", "Read-only file system"),
];

/// What the shell puts around them.
const AROUND: [(&str, &str); 4] =
    [("Zeile ", "line "), ("ligne ", "line "), ("línea ", "line "), (" : ", ": ")];

/// The messages that are known, as they are printed.
pub fn foreign() -> impl Iterator<Item = &'static str> {
    MESSAGES.iter().map(|(own, _)| *own)
}

/// A line that holds one of them, with it in English.
pub fn in_english(line: &str) -> Option<String> {
    foreign().any(|own| line.contains(own)).then(|| {
        let all = MESSAGES.iter().chain(&AROUND);
        all.fold(line.to_owned(), |line, (own, english)| line.replace(own, english))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_the_library_is_read_in_english() {
        // bash and cat under LANG=de_DE.UTF-8 and fr_FR.UTF-8.
        for (line, english) in [
            (
                "run.sh: Zeile 7: mpirun: Kommando nicht gefunden.",
                "run.sh: line 7: mpirun: command not found",
            ),
            (
                "run.sh: ligne 7: mpirun : commande introuvable",
                "run.sh: line 7: mpirun: command not found",
            ),
            ("cat: x: No existe el fichero o el directorio", "cat: x: No such file or directory"),
        ] {
            assert_eq!(in_english(line).as_deref(), Some(english));
        }
        assert_eq!(in_english("cat: x: No such file or directory"), None);
        assert_eq!(in_english("Zeile 7 : alles gut"), None);
    }
}
