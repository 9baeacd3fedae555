//! `--gpus`.

use crate::math::quantile;
use crate::text;

use super::{Advice, Amount, Flag, LEAST_RUNS, Subject, Verdict, whole};

/// A GPU that is busy for this share of the time is a whole one.
const FULL: f64 = 0.9;
/// A shorter run has hardly begun to use them.
const LEAST_SECONDS: u32 = 300;

/// The advice on GPUs; `None` for work that holds none.
pub(super) fn advise(subject: &Subject<'_>) -> Option<Advice> {
    let asked = subject.last.gpus.get().map(u64::from).filter(|gpus| *gpus > 0)?;
    let now = Some(Amount::Count(asked));
    let runs = subject.ended.iter().filter(|run| {
        run.is_completed() && run.elapsed.get().is_some_and(|elapsed| elapsed >= LEAST_SECONDS)
    });
    let mut busy: Vec<f64> =
        runs.filter_map(|run| Some(run.gpu_use()? * f64::from(run.gpus.get()?))).collect();
    busy.sort_by(f64::total_cmp);
    let told = text::count(busy.len() as u64, "completed run");
    if busy.len() < LEAST_RUNS {
        let because = format!("the use of GPUs was measured for {told} of five minutes or more");
        return Some(Advice::unknown(Flag::Gpus, now, busy.len(), because));
    }
    let most = busy.last().copied().unwrap_or_default();
    let needed = quantile(&busy, 1.0 - subject.basis.risk).unwrap_or(most);
    let idle = most < 0.01;
    let wanted = if idle { 0 } else { whole(needed / FULL - 1e-9).max(1) };
    let lower = wanted < asked;
    let because = if idle {
        format!(
            "{told}, and none used a GPU: leave out --gpus, --gres=gpu and what else asks for one, and \
             run it where there are none"
        )
    } else {
        let alike = if asked > 1 { ", whether all a little or few of them fully" } else { "" };
        format!("{told}, at most as busy together as {most:.2} of {asked}{alike}")
    };
    Some(Advice {
        flag: Flag::Gpus,
        verdict: if lower { Verdict::Lower } else { Verdict::Keep },
        now,
        suggestion: lower.then_some(Amount::Count(wanted)),
        runs: busy.len(),
        most: Some(Amount::Count(whole(most))),
        quantile: Some(Amount::Count(whole(needed))),
        headroom: None,
        misfits: None,
        because,
    })
}
