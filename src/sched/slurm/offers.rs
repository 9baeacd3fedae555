//! What a user of this cluster may ask for: its partitions, and the accounts and QOS of the user's own
//! associations.
//!
//! Asked only when a submission was refused for one of them: one query each. What a site hides from a
//! user is not in the answer.

use crate::model::{Association, Queue};

use super::{Jobs, SchedError, limits, partitions};

/// What is asked of an association: less than capacity needs, and any release can answer it.
const COLUMNS: [&str; 3] = ["Account", "Partition", "QOS"];

impl Jobs<'_> {
    /// The partitions, with who may use them, in the cluster's order.
    pub fn partitions(&self) -> Result<Vec<Queue>, SchedError> {
        let cmd = self.ask("scontrol", &["--all", "--oneliner", "show", "partition"]);
        Ok(partitions::queues(&self.query(&cmd)?.stdout))
    }

    /// The associations of the caller.
    pub fn associations(&self) -> Result<Vec<Association>, SchedError> {
        let name = self.runner.caller().name.ok_or_else(|| SchedError::Failed {
            command: "sacctmgr show associations".to_owned(),
            message: "your login name is not known".to_owned(),
        })?;
        let cmd = self
            .ask("sacctmgr", &["--readonly", "--noheader", "--parsable2", "show", "associations"])
            .arg(format!("user={name}"))
            .arg(limits::format(&COLUMNS));
        Ok(limits::associations(&self.query(&cmd)?.stdout, &COLUMNS, None))
    }

    /// Every QOS of the cluster, for sites whose associations name none.
    pub fn all_qos(&self) -> Result<Vec<String>, SchedError> {
        let args = ["--readonly", "--noheader", "--parsable2", "show", "qos", "format=Name"];
        let output = self.query(&self.ask("sacctmgr", &args))?;
        Ok(lines(&output.stdout))
    }
}

fn lines(output: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(output);
    text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answers_of_the_real_clients_are_read() {
        // `sacctmgr --readonly --noheader --parsable2 show associations user=alice
        // format=Account,Partition,QOS` of Slurm 22.05.
        let shown = b"physics||high,normal,strict\nchem|gpu|normal\n";
        let found = limits::associations(shown, &COLUMNS, None);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].qos, ["high", "normal", "strict"]);
        assert_eq!(found[1].partition.as_deref(), Some("gpu"));
        assert!(limits::associations(b"\n||\n", &COLUMNS, None).is_empty());
    }
}
