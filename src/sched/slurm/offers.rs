//! What a user of this cluster may ask for: its partitions, and the accounts and QOS of the user's own
//! associations.
//!
//! Asked only when a submission was refused for one of them: one query each. What a site hides from a
//! user is not in the answer, and whether a partition takes an account is not to be seen here.

use std::collections::BTreeSet;

use super::{Jobs, SchedError};

/// An association of a user.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Association {
    /// The account.
    pub account: String,
    /// The one partition that it holds for; `None` for all.
    pub partition: Option<String>,
    /// The QOS that may be asked for.
    pub qos: Vec<String>,
}

impl Jobs<'_> {
    /// The partitions that take jobs, in the cluster's order.
    pub fn partitions(&self) -> Result<Vec<String>, SchedError> {
        let output = self.query(&self.ask("sinfo", &["--noheader", "--format=%R|%a"]))?;
        Ok(partitions(&output.stdout))
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
            .arg("format=Account,Partition,QOS");
        Ok(associations(&self.query(&cmd)?.stdout))
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

/// `gpu|up`: a line for each partition and availability.
fn partitions(output: &[u8]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let rows = lines(output);
    let rows = rows.iter().filter_map(|row| row.split_once('|'));
    let open = rows.filter(|(_, state)| *state == "up").map(|(name, _)| name.to_owned());
    open.filter(|name| seen.insert(name.clone())).collect()
}

/// `physics||high,normal`
fn associations(output: &[u8]) -> Vec<Association> {
    let read = |line: String| {
        let mut cells = line.split('|');
        let account = cells.next()?.to_owned();
        let partition = cells.next().filter(|name| !name.is_empty()).map(str::to_owned);
        let qos = cells.next().unwrap_or_default().split(',').filter(|name| !name.is_empty());
        let qos = qos.map(str::to_owned).collect();
        (!account.is_empty()).then_some(Association { account, partition, qos })
    };
    lines(output).into_iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answers_of_the_real_clients_are_read() {
        // `sinfo --noheader --format=%R|%a` of Slurm 22.05.
        let shown = b"batch|up\nshort|up\ngpu|up\ndown|down\ndrainp|drain\ninact|inactive\n";
        assert_eq!(partitions(shown), ["batch", "short", "gpu"]);
        // `sacctmgr --readonly --noheader --parsable2 show associations user=alice
        // format=Account,Partition,QOS` of Slurm 22.05.
        let shown = b"physics||high,normal,strict\nchem|gpu|normal\n";
        let found = associations(shown);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].qos, ["high", "normal", "strict"]);
        assert_eq!(found[1].partition.as_deref(), Some("gpu"));
        assert!(associations(b"\n||\n").is_empty());
    }
}
