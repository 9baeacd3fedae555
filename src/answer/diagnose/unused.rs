//! GPUs that a job held and never used: no failure that anybody is told of, and the dearest one.
//!
//! Said only of what was measured. A short run may end between two samples, so it is said of none.

use crate::model::{Job, Notice, Span};
use crate::text::count;

/// What to say of a run of at least `least` whose GPUs did nothing.
pub(super) fn gpus(job: &Job, least: Span) -> Option<Notice> {
    let gpus = job.unused_gpus()?;
    let elapsed = job.elapsed.get().filter(|elapsed| *elapsed >= least)?;
    let text = format!(
        "{} held for {elapsed} and never used: accounting measured 0 % of use and no memory in every \
         step",
        count(gpus, "GPU")
    );
    let hint = "if the program should use one, print what it sees as its first step \
                (nvidia-smi -L; torch.cuda.is_available()): a build without CUDA or a container \
                without --nv runs on the CPU and says nothing; if it needs none, leave out --gres and \
                --gpus";
    Some(Notice::warning("gpus-unused", text).hint(hint))
}
