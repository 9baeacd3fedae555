//! What a script asks for, as its directives say it.

use super::{Script, SubmitLine};
use crate::model::{Shape, ShapeError};

impl Script {
    /// What its (first component's) directives ask for, and those that cannot be read.
    pub fn shape(&self) -> (Shape, Vec<ShapeError>) {
        let read = self.directives.iter();
        let read = read.filter(|given| given.ignored.is_none() && given.component == 0);
        shape(read.map(|given| (given.option.as_str(), given.value.as_deref())))
    }
}

impl SubmitLine {
    /// Adds what its options ask for to what the script says; they win.
    pub fn refine(&self, shape: &mut Shape) -> Vec<ShapeError> {
        let given = self.options.iter().filter(|given| given.component == 0);
        let applied = given.map(|given| shape.apply(&given.option, given.value.as_deref()));
        applied.filter_map(Result::err).collect()
    }
}

fn shape<'a>(
    options: impl Iterator<Item = (&'a str, Option<&'a str>)>,
) -> (Shape, Vec<ShapeError>) {
    let mut shape = Shape::default();
    let errors = options.filter_map(|(option, value)| shape.apply(option, value).err()).collect();
    (shape, errors)
}

#[cfg(test)]
mod tests {
    use super::super::{parse, parse_submit_line};
    use crate::model::Bytes;

    #[test]
    fn directives_are_what_the_job_asks_for_and_the_command_line_wins() {
        let script = parse(
            b"#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=4\n#SBATCH -t 1-00:00:00 --mem 40G\n\
              #SBATCH --gres=gpu:a100:2\n#SBATCH --nodes=none\npython train.py\n#SBATCH -N 9\n",
        );
        let (mut shape, errors) = script.shape();
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert_eq!((shape.nodes, shape.gpus_on_node()), (Some((2, None)), 2));
        assert_eq!(shape.memory_on_node(), Some(Bytes(40 * Bytes::GIB)));
        let line = parse_submit_line("sbatch -N 1 --mem=10G -p gpu run.sh -N 7");
        assert!(line.refine(&mut shape).is_empty());
        assert_eq!(
            (shape.nodes, shape.partitions.as_slice()),
            (Some((1, None)), &["gpu".to_owned()][..])
        );
        assert_eq!(shape.memory_on_node(), Some(Bytes(10 * Bytes::GIB)));
        assert_eq!(shape.tasks_per_node, Some(4));
    }
}
