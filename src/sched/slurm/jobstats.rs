//! What a monitoring of the site left in the administrator's comment of a job.
//!
//! Sites that run `jobstats` write `JS1:` and the use of each node and GPU, as JSON, packed with
//! gzip, in base64. It is measured on the nodes and so better than what accounting samples. `JS1:Short`
//! and `JS1:None` say that nothing was measured. Format: the source of `jobstats`.

use std::collections::BTreeMap;
use std::io::Read;

use flate2::read::GzDecoder;
use serde::Deserialize;

use crate::model::{GpuUse, NodeUse};

/// Far more than a thousand nodes need; what unpacks to more is not believed.
const LARGEST: u64 = 4 << 20;

#[derive(Deserialize)]
struct Summary {
    nodes: BTreeMap<String, Node>,
}

#[derive(Deserialize)]
struct Node {
    cpus: Option<f64>,
    total_time: Option<f64>,
    used_memory: Option<f64>,
    total_memory: Option<f64>,
    #[serde(default)]
    gpu_utilization: BTreeMap<String, f64>,
    #[serde(default)]
    gpu_used_memory: BTreeMap<String, f64>,
    #[serde(default)]
    gpu_total_memory: BTreeMap<String, f64>,
}

/// The use of each node; empty where the comment holds none.
pub(super) fn read(comment: &str) -> Vec<NodeUse> {
    let packed = comment.trim().strip_prefix("JS1:").and_then(bytes);
    let text = packed.and_then(|packed| {
        let mut text = Vec::new();
        let unpacked = GzDecoder::new(packed.as_slice()).take(LARGEST + 1).read_to_end(&mut text);
        unpacked.ok().filter(|size| *size as u64 <= LARGEST).map(|_| text)
    });
    let summary = text.and_then(|text| serde_json::from_slice::<Summary>(&text).ok());
    let nodes = summary.map(|summary| summary.nodes).unwrap_or_default();
    nodes.into_iter().map(|(node, used)| told(node, &used)).collect()
}

fn told(node: String, used: &Node) -> NodeUse {
    let gpus = used.gpu_utilization.iter().map(|(index, percent)| GpuUse {
        index: index.clone(),
        percent: share(*percent),
        memory: whole(used.gpu_used_memory.get(index).copied()),
        of_memory: whole(used.gpu_total_memory.get(index).copied()),
    });
    NodeUse {
        node,
        cpus: whole(used.cpus),
        cpu_seconds: whole(used.total_time),
        memory: whole(used.used_memory),
        of_memory: whole(used.total_memory),
        gpus: gpus.collect(),
    }
}

/// A number that was written as a float; negative ones stand for nothing.
fn whole(number: Option<f64>) -> Option<u64> {
    let number = number.filter(|number| (0.0..1e18).contains(number))?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "range checked above"
    )]
    Some(number.round() as u64)
}

fn share(percent: f64) -> Option<f64> {
    (0.0..=100.0).contains(&percent).then_some(percent)
}

/// Base64 (RFC 4648), padded or not.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for byte in text.trim_end_matches('=').bytes() {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(six);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).ok()?);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;

    use super::*;

    /// As `jobstats` writes a comment.
    fn comment(json: &str) -> String {
        const DIGITS: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut packer = GzEncoder::new(Vec::new(), Compression::default());
        packer.write_all(json.as_bytes()).expect("packed");
        let packed = packer.finish().expect("packed");
        let mut text = String::from("JS1:");
        for chunk in packed.chunks(3) {
            let three = [chunk[0], *chunk.get(1).unwrap_or(&0), *chunk.get(2).unwrap_or(&0)];
            let bits = u32::from_be_bytes([0, three[0], three[1], three[2]]);
            for place in 0..4 {
                let digit = DIGITS[(bits >> (18 - 6 * place) & 63) as usize];
                text.push(if place <= chunk.len() { char::from(digit) } else { '=' });
            }
        }
        text
    }

    #[test]
    fn the_use_of_nodes_and_gpus_is_read() {
        let json = r#"{"gpus": 2, "total_time": 3600, "nodes": {"n1": {"cpus": 8,
            "total_time": 7200.5, "used_memory": 1073741824, "total_memory": 68719476736,
            "gpu_utilization": {"0": 93.5, "1": 0.0}, "gpu_used_memory": {"0": 5e9, "1": 0},
            "gpu_total_memory": {"0": 8e10, "1": 8e10}}, "n2": {"cpus": 8, "total_time": -1}}}"#;
        let nodes = read(&comment(json));
        assert_eq!(nodes.len(), 2);
        assert_eq!((nodes[0].node.as_str(), nodes[0].cpu_seconds), ("n1", Some(7201)));
        let percents: Vec<Option<f64>> = nodes[0].gpus.iter().map(|gpu| gpu.percent).collect();
        assert_eq!(percents, [Some(93.5), Some(0.0)]);
        assert_eq!(nodes[0].gpus[0].of_memory, Some(80_000_000_000));
        assert_eq!((nodes[1].cpu_seconds, nodes[1].memory), (None, None));
    }

    #[test]
    fn a_comment_without_measurements_gives_none() {
        for text in ["", "JS1:Short", "JS1:None", "JS1:", "JS1:!!!!", "JS2:AAAA", "hello"] {
            assert!(read(text).is_empty(), "{text}");
        }
    }

    proptest! {
        /// Any comment is read.
        #[test]
        fn anything_is_read(text in "(JS1:)?[A-Za-z0-9+/=]{0,80}|.{0,40}") {
            let _ = read(&text);
        }
    }
}
