//! The machine itself: real processes, files, clock and environment.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, kill_process_group};

use super::file::within;
use super::patience::Patience;
use super::piped::Piped;
use super::{Caller, Cmd, Content, ExecError, FileError, FileErrorKind, Finished, Runner, allow};

/// Scheduler commands that may run at once: a controller is shared by thousands of users.
const AT_ONCE: usize = 4;
/// Standard error is for one message; more is drained and dropped.
const STDERR_CAP: usize = 64 << 10;
/// Between asking a process group to end and ending it.
const GRACE: Duration = Duration::from_millis(500);
/// So much silence of a child that has ended is the end of its output, although something that it
/// left running holds the pipe open. Long enough for a machine under load.
const DRAIN: Duration = Duration::from_secs(1);
/// How often a child that says nothing is looked after.
const LOOK: Duration = Duration::from_millis(20);

/// The machine jobwise runs on.
#[derive(Debug, Default)]
pub struct System {
    trace: bool,
    running: Mutex<usize>,
    ended: Condvar,
    patience: Patience,
}

impl System {
    /// The machine. With `trace`, each command is told on standard error with its time and bytes.
    pub fn new(trace: bool) -> Self {
        Self { trace, ..Self::default() }
    }

    /// The columns of the terminal that standard output is.
    pub fn terminal_width(&self) -> Option<usize> {
        let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
        Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
    }

    /// The columns of the terminal that standard error is.
    pub fn error_width() -> Option<usize> {
        let size = rustix::termios::tcgetwinsize(io::stderr()).ok()?;
        Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
    }

    fn seat(&self) -> Seat<'_> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        while *running >= AT_ONCE {
            running = self.ended.wait(running).unwrap_or_else(PoisonError::into_inner);
        }
        *running += 1;
        Seat(self)
    }
}

/// The right to run one command; given back when dropped.
struct Seat<'s>(&'s System);

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        *self.0.running.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.ended.notify_one();
    }
}

impl Runner for System {
    fn stream(&self, cmd: &Cmd, sink: &mut dyn FnMut(&[u8])) -> Result<Finished, ExecError> {
        if !allow::permits(cmd) {
            return Err(ExecError::NotAllowed { command: cmd.to_string() });
        }
        let _seat = self.seat();
        let cmd = &cmd.clone().deadline(self.patience.left(cmd)?);
        let started = instant();
        let mut bytes = 0;
        let result = run(cmd, started, &mut |chunk| {
            bytes += chunk.len() as u64;
            sink(chunk);
        });
        if matches!(result, Err(ExecError::TimedOut { .. })) {
            self.patience.lose(cmd, started);
        }
        if self.trace {
            let outcome = match &result {
                Ok(Finished { status: Some(status), .. }) => format!("exit {status}"),
                Ok(_) => "killed".to_owned(),
                Err(error) => error.to_string(),
            };
            let millis = started.elapsed().as_millis();
            // A closed standard error is no reason to fail.
            let _ = writeln!(io::stderr(), "+ {cmd}  [{millis} ms, {bytes} bytes, {outcome}]");
        }
        result
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Content>, FileError> {
        open(path, OFlags::NONBLOCK)
    }

    fn open_itself(&self, path: &Path) -> Result<Box<dyn Content>, FileError> {
        open(path, OFlags::NONBLOCK | OFlags::NOFOLLOW)
    }

    fn piped(&self, path: &Path) -> Result<Box<dyn Content>, FileError> {
        piped(path)
    }

    #[expect(clippy::disallowed_methods, reason = "this is the door")]
    fn list(&self, directory: &Path) -> Result<Vec<String>, FileError> {
        let entries =
            std::fs::read_dir(directory).map_err(|error| FileError::from_io(directory, &error))?;
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.sort_unstable();
        Ok(names)
    }

    #[expect(clippy::disallowed_methods, reason = "this is the door")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn zone(&self) -> TimeZone {
        TimeZone::system()
    }

    #[expect(clippy::disallowed_methods, reason = "this is the door")]
    fn env(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn caller(&self) -> Caller {
        let name = self.env("LOGNAME").or_else(|| self.env("USER"));
        Caller { uid: rustix::process::getuid().as_raw(), name }
    }
}

/// A regular file of this machine.
struct OpenFile {
    file: File,
    size: u64,
    modified: Option<Timestamp>,
    owner: u32,
}

impl Content for OpenFile {
    fn size(&self) -> u64 {
        self.size
    }

    fn modified(&self) -> Option<Timestamp> {
        self.modified
    }

    fn owner(&self) -> Option<u32> {
        Some(self.owner)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let buffer = within(self.size, offset, buffer);
        loop {
            match self.file.read_at(buffer, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    fn next_data(&self, offset: u64) -> Option<u64> {
        if offset >= self.size {
            return None;
        }
        match rustix::fs::seek(&self.file, rustix::fs::SeekFrom::Data(offset)) {
            Ok(position) => Some(position),
            // ENXIO: only a hole is left. Any other answer: the file system knows no holes.
            Err(rustix::io::Errno::NXIO) => None,
            Err(_) => Some(offset),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "deadlines are kept here and nowhere else")]
pub(super) fn instant() -> Instant {
    Instant::now()
}

/// The child's environment, and why each variable is touched.
#[expect(clippy::disallowed_methods, reason = "the one place where a child's environment is made")]
fn environment(program: &str) -> BTreeMap<String, std::ffi::OsString> {
    let mut kept: BTreeMap<String, std::ffi::OsString> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        // A user's own formats, filters and widths would change what we parse.
        .filter(|(name, _)| {
            !["SACCT_", "SQUEUE_", "SINFO_", "SCONTROL_"].iter().any(|p| name.starts_with(p))
        })
        .collect();
    // Another cluster is asked for by an argument, never by accident.
    kept.remove("SLURM_CLUSTERS");
    // Some clients wrap to the terminal's width.
    kept.remove("COLUMNS");
    kept.remove("LANGUAGE");
    for (name, value) in [
        // Messages in English, names as the bytes they are.
        ("LC_ALL", "C.UTF-8"),
        // Epoch seconds: no zone, no daylight saving, no site format.
        ("SLURM_TIME_FORMAT", "%s"),
        // Array index lists are cut at 64 bytes otherwise.
        ("SLURM_BITSTR_LEN", "0"),
    ] {
        kept.insert(name.to_owned(), value.into());
    }
    // For each epoch second that it prints, sacct asks the C library for the zone, which looks at
    // the zone's file each time unless the zone is named: two fifths of its time. The seconds are
    // the same. Other clients print local times besides.
    if program == "sacct" {
        kept.insert("TZ".to_owned(), "UTC0".into());
    }
    kept
}

#[expect(clippy::disallowed_methods, reason = "the one place where processes are started")]
fn spawn(cmd: &Cmd) -> io::Result<Child> {
    Command::new(cmd.program)
        .args(&cmd.args)
        .env_clear()
        .envs(environment(cmd.program))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
}

/// Runs what fetches a package to its end. It shows people what it does on standard error, where
/// that is told; it ends with jobwise when they interrupt it, for it stays in its process group.
#[expect(clippy::disallowed_methods, reason = "the one other place where a process is started")]
pub(super) fn fetch(cmd: &Cmd, told: bool) -> Result<Finished, ExecError> {
    let io_error =
        |error: &io::Error| ExecError::Io { command: cmd.brief(), reason: error.to_string() };
    let output = || if told { Stdio::from(io::stderr()) } else { Stdio::piped() };
    let mut command = Command::new(cmd.program);
    command.args(&cmd.args).env_clear().envs(environment(cmd.program)).stdin(Stdio::null());
    let mut child =
        command.stdout(output()).stderr(output()).spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => ExecError::Missing { program: cmd.program.to_owned() },
            _ => io_error(&error),
        })?;
    let complaint = Arc::new(Mutex::new(Vec::new()));
    let mut readers = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        readers.push(thread::spawn(move || drain_bounded(stdout, &Mutex::new(Vec::new()))));
    }
    if let Some(stderr) = child.stderr.take() {
        let kept = Arc::clone(&complaint);
        readers.push(thread::spawn(move || drain_bounded(stderr, &kept)));
    }
    let status = wait(&mut child, instant(), cmd.deadline).map_err(|error| io_error(&error))?;
    let Some(status) = status else {
        let _ = child.kill();
        let _ = child.wait();
        return Err(ExecError::TimedOut { command: cmd.brief(), after: cmd.deadline });
    };
    for reader in readers {
        let _ = reader.join();
    }
    let stderr = complaint.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(Finished { status: status.code(), stderr })
}

fn run(cmd: &Cmd, started: Instant, sink: &mut dyn FnMut(&[u8])) -> Result<Finished, ExecError> {
    let io_error =
        |error: &io::Error| ExecError::Io { command: cmd.brief(), reason: error.to_string() };
    let mut child = spawn(cmd).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => ExecError::Missing { program: cmd.program.to_owned() },
        _ => io_error(&error),
    })?;
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        end_group(&mut child);
        return Err(io_error(&io::Error::other("no pipe")));
    };
    // Both pipes are drained on threads of their own: a full one would block the child for ever.
    let complaint = Arc::new(Mutex::new(Vec::new()));
    let (complaining, quiet) = mpsc::sync_channel::<()>(0);
    let kept = Arc::clone(&complaint);
    thread::spawn(move || {
        drain_bounded(stderr, &kept);
        drop(complaining);
    });
    let (chunks, received) = mpsc::sync_channel::<io::Result<Vec<u8>>>(4);
    thread::spawn(move || pump(stdout, &chunks));

    match follow(cmd, started, &mut child, &received, sink) {
        Ok(status) => {
            // Nothing is ever sent: this waits until all was read, or not much longer.
            let _ = quiet.recv_timeout(GRACE);
            let stderr = complaint.lock().unwrap_or_else(PoisonError::into_inner).clone();
            Ok(Finished { status: status.code(), stderr })
        }
        Err(error) => {
            end_group(&mut child);
            Err(error)
        }
    }
}

/// Passes on what a child prints until it has ended, within its deadline and its cap.
fn follow(
    cmd: &Cmd,
    started: Instant,
    child: &mut Child,
    received: &mpsc::Receiver<io::Result<Vec<u8>>>,
    sink: &mut dyn FnMut(&[u8]),
) -> Result<ExitStatus, ExecError> {
    let io_error =
        |error: &io::Error| ExecError::Io { command: cmd.brief(), reason: error.to_string() };
    let timed_out = || ExecError::TimedOut { command: cmd.brief(), after: cmd.deadline };
    let mut taken: u64 = 0;
    let mut ended: Option<ExitStatus> = None;
    loop {
        if ended.is_none() {
            ended = child.try_wait().map_err(|error| io_error(&error))?;
        }
        let left = cmd.deadline.saturating_sub(started.elapsed());
        if left.is_zero() {
            return ended.ok_or_else(timed_out);
        }
        match received.recv_timeout(left.min(if ended.is_some() { DRAIN } else { LOOK })) {
            Ok(Ok(chunk)) => {
                let room = usize::try_from(cmd.cap - taken).unwrap_or(usize::MAX);
                let fits = chunk.len().min(room);
                sink(&chunk[..fits]);
                taken += fits as u64;
                if fits < chunk.len() {
                    return Err(ExecError::Truncated { command: cmd.brief(), cap: cmd.cap });
                }
            }
            Ok(Err(error)) => return Err(io_error(&error)),
            Err(RecvTimeoutError::Timeout) => {
                if let Some(status) = ended {
                    return Ok(status);
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                let status = match ended {
                    Some(status) => Ok(Some(status)),
                    None => wait(child, started, cmd.deadline),
                };
                return status.map_err(|error| io_error(&error))?.ok_or_else(timed_out);
            }
        }
    }
}

/// Sends what a pipe carries until its end, or until nobody listens.
fn pump(mut pipe: impl Read, chunks: &mpsc::SyncSender<io::Result<Vec<u8>>>) {
    loop {
        let mut chunk = vec![0; 64 << 10];
        let sent = match pipe.read(&mut chunk) {
            Ok(0) => return,
            Ok(count) => {
                chunk.truncate(count);
                chunks.send(Ok(chunk))
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                let _ = chunks.send(Err(error));
                return;
            }
        };
        if sent.is_err() {
            return;
        }
    }
}

fn drain_bounded(mut pipe: impl Read, kept: &Mutex<Vec<u8>>) {
    let mut chunk = [0; 8 << 10];
    while let Ok(count @ 1..) = pipe.read(&mut chunk) {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let room = STDERR_CAP - kept.len();
        kept.extend_from_slice(&chunk[..count.min(room)]);
    }
}

/// Waits for a child that has closed its output; `None` at the deadline.
fn wait(child: &mut Child, started: Instant, deadline: Duration) -> io::Result<Option<ExitStatus>> {
    let mut pause = Duration::from_micros(200);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if started.elapsed() >= deadline {
            return Ok(None);
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Ends a child with everything it started: first asked, then made to.
fn end_group(child: &mut Child) {
    let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else {
        return;
    };
    // Errors mean that it is gone already.
    let _ = kill_process_group(group, Signal::TERM);
    let _ = wait(child, instant(), GRACE);
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.wait();
}

/// Opens a regular file. Non-blocking, so that a FIFO without a writer cannot hold us up before we see
/// its kind.
fn open(path: &Path, flags: OFlags) -> Result<Box<dyn Content>, FileError> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .map_err(|error| FileError::from_io(path, &error))?;
    let metadata = file.metadata().map_err(|error| FileError::from_io(path, &error))?;
    if metadata.is_dir() {
        return Err(FileError::new(path, FileErrorKind::Directory));
    }
    if !metadata.is_file() {
        return Err(FileError::new(path, FileErrorKind::Special));
    }
    let modified = metadata.modified().ok().and_then(|time| Timestamp::try_from(time).ok());
    let owner = std::os::unix::fs::MetadataExt::uid(&metadata);
    Ok(Box::new(OpenFile { file, size: metadata.len(), modified, owner }))
}

fn piped(path: &Path) -> Result<Box<dyn Content>, FileError> {
    let io = |error: io::Error| FileError::from_io(path, &error);
    if path.as_os_str() == "-" {
        return Ok(Box::new(Piped::read(&mut io::stdin().lock()).map_err(io)?));
    }
    // A FIFO to which nobody writes is empty; of one to which somebody does, its end is waited for.
    let mut file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)
        .map_err(io)?;
    let special = || FileError::new(path, FileErrorKind::Special);
    let kind = file.metadata().map_err(io)?.file_type();
    if !std::os::unix::fs::FileTypeExt::is_fifo(&kind) {
        return Err(special());
    }
    let flags = rustix::fs::fcntl_getfl(&file).map_err(|error| io(error.into()))?;
    rustix::fs::fcntl_setfl(&file, flags - OFlags::NONBLOCK).map_err(|error| io(error.into()))?;
    let kept = Piped::read(&mut file).map_err(io)?;
    if kept.size() == 0 { Err(special()) } else { Ok(Box::new(kept)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_on_the_list_is_not_run() {
        let runner: &dyn Runner = &System::new(false);
        let refused = runner.run(&Cmd::new("scontrol", &["update", "JobId=1", "Priority=0"]));
        assert!(matches!(refused, Err(ExecError::NotAllowed { .. })), "{refused:?}");
    }

    /// The tests below go past the allow-list on purpose, with programs every machine has.
    fn run_any(cmd: &Cmd) -> (Result<Finished, ExecError>, Vec<u8>) {
        let mut out = Vec::new();
        let result = run(cmd, instant(), &mut |chunk| out.extend_from_slice(chunk));
        (result, out)
    }

    #[test]
    fn output_status_and_complaint_come_back() {
        let (result, out) = run_any(&Cmd::new("sh", &["-c", "echo out; echo bad >&2; exit 3"]));
        let finished = result.expect("sh runs");
        assert_eq!((out.as_slice(), finished.status), (b"out\n".as_slice(), Some(3)));
        assert_eq!(finished.complaint(), "bad");
    }

    #[test]
    fn a_program_that_hangs_is_ended_with_what_it_started() {
        let script = "sleep 600 & echo $!; trap '' TERM; wait; sleep 600";
        let cmd = Cmd::new("sh", &["-c", script]).deadline(Duration::from_millis(300));
        let (result, out) = run_any(&cmd);
        assert!(matches!(result, Err(ExecError::TimedOut { .. })), "{result:?}");
        let grandchild = String::from_utf8(out).expect("a number").trim().to_owned();
        let stat = format!("/proc/{grandchild}/stat");
        let state = System::new(false).open(Path::new(&stat)).map(|stat| stat.read_all(4096));
        // A killed orphan may stay a zombie until init collects it.
        let gone = match state {
            Ok(Ok(text)) => String::from_utf8_lossy(&text).contains(") Z "),
            _ => true,
        };
        assert!(gone, "process {grandchild} lives on");
    }

    #[test]
    fn what_a_program_leaves_running_holds_nothing_up() {
        let script = "sleep 5 & echo out; echo bad >&2; exit 3";
        let cmd = Cmd::new("sh", &["-c", script]);
        let begun = instant();
        let (result, out) = run_any(&cmd);
        let finished = result.expect("it ended");
        assert_eq!((out.as_slice(), finished.status), (b"out\n".as_slice(), Some(3)));
        assert_eq!(finished.complaint(), "bad");
        assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    }

    #[test]
    fn a_program_that_prints_without_end_is_ended_at_its_deadline() {
        let cmd = Cmd::new("yes", &[]).deadline(Duration::from_millis(300)).cap(u64::MAX);
        let begun = instant();
        let result = run(&cmd, begun, &mut |_| {});
        assert!(matches!(result, Err(ExecError::TimedOut { .. })), "{result:?}");
        assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    }

    #[test]
    fn more_output_than_the_cap_is_an_error_after_the_cap_was_delivered() {
        let cmd = Cmd::new("sh", &["-c", "yes | head -c 300000"]).cap(100_000);
        let (result, out) = run_any(&cmd);
        assert!(matches!(result, Err(ExecError::Truncated { cap: 100_000, .. })), "{result:?}");
        assert_eq!(out.len(), 100_000);
    }

    #[test]
    fn a_program_that_is_not_there_is_missing() {
        let (result, _) = run_any(&Cmd::new("no-such-program-of-any-scheduler", &[]));
        assert!(matches!(result, Err(ExecError::Missing { .. })), "{result:?}");
    }

    #[test]
    fn only_regular_files_open() {
        let runner = System::new(false);
        let kind = |path: &str| runner.open(Path::new(path)).err().map(|error| error.kind);
        assert_eq!(kind("/no/such/file"), Some(FileErrorKind::Absent));
        assert_eq!(kind("/"), Some(FileErrorKind::Directory));
        assert_eq!(kind("/dev/null"), Some(FileErrorKind::Special));
        assert_eq!(kind("/etc/passwd/x"), Some(FileErrorKind::Absent));
    }
}
