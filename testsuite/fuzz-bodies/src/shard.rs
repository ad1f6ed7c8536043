//! Shards of the sampler, and the vectors made of them.

use crate::input::Input;
use crate::vectors::check_set;
use pleach_collector::convert::convert;
use pleach_collector::vector::VectorSet;
use pleach_wire::shard::{Encoder, Frame, FrameKind, Frames};

/// Raw bytes, or frames whose checksums are right. After a frame, bytes of nothing may follow.
pub fn shard(data: &[u8]) {
    let mut input = Input(data);
    let mut shard = Vec::new();
    if input.u8() % 2 == 0 {
        shard.extend(input.0);
    } else {
        while !input.0.is_empty() {
            let (kind, length) = (input.u8(), usize::from(input.u8()) << (input.u8() % 3));
            let payload = input.take(length);
            match kind_of(kind) {
                Some(kind) => shard.extend(frame(kind, |e| e.bytes(payload))),
                None => shard.extend(payload),
            }
        }
    }
    let mut frames = Frames::new(&shard);
    for decoded in frames.by_ref() {
        let encoded = encode(&decoded);
        assert_eq!(Frames::new(&encoded).next(), Some(decoded));
    }
    let damaged = frames.damaged();
    assert!(damaged <= shard.len());
    let bytes = shard.len() as u64;
    let mut set = VectorSet::default();
    let found = convert(
        &[(b"a.shard".to_vec(), shard.clone()), (b"b.shard".to_vec(), shard)],
        &mut set,
    );
    // A shard must begin with its process.
    let expected = if found.shards == 0 { bytes } else { damaged as u64 };
    assert_eq!(found.damaged_bytes, 2 * expected);
    check_set(&set);
}

fn kind_of(byte: u8) -> Option<FrameKind> {
    Some(match byte % 8 {
        1 => FrameKind::Process,
        2 => FrameKind::Mappings,
        3 => FrameKind::Burst,
        4 => FrameKind::Final,
        5 => FrameKind::Verified,
        6 => FrameKind::Opcodes,
        7 => FrameKind::BurstTiming,
        _ => return None,
    })
}

fn frame(kind: FrameKind, fill: impl FnOnce(&mut Encoder)) -> Vec<u8> {
    let mut buffer = vec![0; 1 << 18];
    let mut encoder = Encoder::new(&mut buffer);
    fill(&mut encoder);
    encoder.finish(kind).expect("room").to_vec()
}

fn encode(decoded: &Frame) -> Vec<u8> {
    match decoded {
        Frame::Process(head) => frame(FrameKind::Process, |e| {
            e.u32(head.pid);
            e.u32(head.ppid);
            e.u64(head.start_ns);
            e.u64(head.base_cpu_ns);
            e.string(&head.parent);
            e.string(&head.executable);
            e.string(&head.arguments);
        }),
        Frame::Mappings(continued, mappings) => frame(FrameKind::Mappings, |e| {
            e.u8((*continued).into());
            for mapping in mappings {
                [mapping.start, mapping.end, mapping.offset, mapping.inode]
                    .iter()
                    .for_each(|word| e.u64(*word));
                e.string(&mapping.path);
                e.string(&mapping.build_id);
            }
        }),
        Frame::Burst(burst) => frame(FrameKind::Burst, |e| {
            e.bytes(&burst.head.to_bytes());
            let mut last = burst.head.start;
            for (from, to) in &burst.branches {
                e.delta(last, *from);
                e.delta(*from, *to);
                last = *to;
            }
            let mut position = 0;
            for observed in &burst.values {
                e.delta(position, observed.branch.into());
                e.delta(0, observed.at);
                e.delta(0, observed.value);
                position = observed.branch.into();
            }
        }),
        Frame::Final(cpu_ns, counters, undisturbed) => frame(FrameKind::Final, |e| {
            e.u64(*cpu_ns);
            e.bytes(&counters.to_bytes());
            e.u8((*undisturbed).into());
        }),
        Frame::Verified(compared, found) => frame(FrameKind::Verified, |e| {
            e.u32(*compared);
            if let Some(found) = found {
                found.encode(e);
            }
        }),
        Frame::BurstTiming(clock) => frame(FrameKind::BurstTiming, |e| clock.encode(e)),
        Frame::Opcodes(opcodes) => frame(FrameKind::Opcodes, |e| {
            for (code, ways) in opcodes {
                e.bytes(&code.to_le_bytes());
                e.u8(*ways);
            }
        }),
    }
}
