//! A cluster for tests: what Slurm's clients print, as text, read by the real reader.

use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::config::Config;
use crate::host::{Caller, Cmd, Content, ExecError, FileError, FileErrorKind, Finished, Runner};
use crate::model::Cluster;
use crate::sched::slurm::Nodes;

/// The moment of every such cluster: 2026-11-30 08:00 UTC.
pub(crate) const NOW: i64 = 1_796_025_600;

/// What each client prints, by a word of its command; alice asks, whose accounts are physics (the
/// default) and chem.
pub(crate) struct Lab {
    pub(crate) answers: Vec<(&'static str, Result<String, &'static str>)>,
}

impl Lab {
    pub(crate) fn new() -> Self {
        let lab = Self { answers: Vec::new() };
        lab.says(
            "show config",
            "ClusterName = lab\nSelectType = select/cons_tres\n\
             SelectTypeParameters = CR_CORE_MEMORY\nEnforcePartLimits = NO\n\
             AccountingStorageEnforce = associations,limits,qos,safe\nLicenses = matlab:2\n",
        )
        .says("id", "uid=1001(alice) gid=1001(alice) groups=1001(alice),1100(staff)\n")
        .says("show node", "NodeName=n1 CPUTot=8 CPUAlloc=0 RealMemory=16000 AllocMem=0 State=IDLE Partitions=batch\n")
        .says("show partition", "PartitionName=batch Nodes=n1 TotalNodes=1 State=UP MaxTime=1-00:00:00\n")
        .says("show reservation", "No reservations in the system\n")
        .says("squeue", "")
        .says("show qos", "normal|50|||||||||||||||||||\n")
        .says(
            "show assoc ",
            "lab|physics||high,normal|normal||||||||||||\nlab|chem||normal|normal||||||||||||\n",
        )
        .says(
            "assoc_mgr",
            "ClusterName=lab Account=physics UserName=alice(1001) Partition= DefAssoc=Yes\n",
        )
    }

    /// What a client prints; the text that is said last counts.
    pub(crate) fn says(mut self, word: &'static str, text: &str) -> Self {
        self.answers.insert(0, (word, Ok(text.to_owned())));
        self
    }

    /// A client that refuses.
    pub(crate) fn refuses(mut self, word: &'static str, stderr: &'static str) -> Self {
        self.answers.insert(0, (word, Err(stderr)));
        self
    }

    /// One more record of a kind.
    pub(crate) fn adds(self, word: &'static str, text: &str) -> Self {
        let known = self.answers.iter().find(|(known, _)| *known == word);
        let before = known.and_then(|(_, answer)| answer.clone().ok()).unwrap_or_default();
        self.says(word, &format!("{before}{text}"))
    }

    /// Nodes in place of the usual one, each `NAME REST`; all in partition batch.
    pub(crate) fn nodes(self, nodes: &[&str]) -> Self {
        let records: Vec<String> = nodes
            .iter()
            .map(|node| {
                let (name, rest) = node.split_once(' ').expect("a name and the rest");
                format!("NodeName={name} {rest} Partitions=batch\n")
            })
            .collect();
        self.says("show node", &records.concat())
    }

    pub(crate) fn cluster(&self) -> Cluster {
        let settings = Config::recorded(None).expect("defaults").settings.scheduler;
        Nodes::new(self, &settings).cluster().expect("a cluster").value
    }
}

impl Runner for Lab {
    fn stream(&self, cmd: &Cmd, sink: &mut dyn FnMut(&[u8])) -> Result<Finished, ExecError> {
        assert!(crate::host::allow::permits(cmd), "{cmd}");
        let command = format!("{cmd} ");
        let answer = self.answers.iter().find(|(word, _)| command.contains(word));
        let (status, stderr) = match answer.map(|(_, answer)| answer) {
            Some(Ok(text)) => {
                sink(text.as_bytes());
                (0, "")
            }
            Some(Err(stderr)) => (1, *stderr),
            None => return Err(ExecError::Missing { program: cmd.program.to_owned() }),
        };
        Ok(Finished { status: Some(status), stderr: stderr.as_bytes().to_vec() })
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Content>, FileError> {
        if path.ends_with("hostname") {
            return Ok(Box::new(b"login1\n".to_vec()));
        }
        Err(FileError::new(path, FileErrorKind::Absent))
    }

    fn list(&self, directory: &Path) -> Result<Vec<String>, FileError> {
        Err(FileError::new(directory, FileErrorKind::Absent))
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_second(NOW).expect("a moment")
    }

    fn zone(&self) -> TimeZone {
        TimeZone::UTC
    }

    fn env(&self, _name: &str) -> Option<String> {
        None
    }

    fn caller(&self) -> Caller {
        Caller { uid: 1001, name: Some("alice".to_owned()) }
    }
}
