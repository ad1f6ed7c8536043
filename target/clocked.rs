use pleach_collector::vector::VectorSet;
fn main() {
    let set = VectorSet::read_from(std::env::args().nth(1).unwrap().as_ref()).unwrap();
    let mut per: std::collections::BTreeMap<u64, Vec<(f32,f32)>> = Default::default();
    for b in &set.bursts {
        if let Some(c) = b.clock {
            let key = b.start.map_or(0, |s| s.offset) / 24 * 24;
            per.entry(key).or_default().push((c.branches, c.nanoseconds));
        }
    }
    let budget = set.bursts.iter().filter(|b| b.end_reason as u8 == 0 && b.branches.len() >= 200).count();
    let all: Vec<_> = per.values().flatten().collect();
    println!("bursts {} budget {} clocked {}", set.bursts.len(), budget, all.len());
    let zero = all.iter().filter(|c| c.1 == 0.0).count();
    println!("zero {zero}, mean distance x passes {}", all.iter().map(|c| c.0).sum::<f32>() / all.len() as f32);
    let mut rows: Vec<_> = per.iter().collect();
    rows.sort_by_key(|r| std::cmp::Reverse(r.1.len()));
    for (k, v) in rows.iter().take(12) {
        let mut r: Vec<f32> = v.iter().map(|c| c.1 / c.0).collect();
        r.sort_by(f32::total_cmp);
        let mean = v.iter().map(|c| c.1).sum::<f32>() / v.iter().map(|c| c.0).sum::<f32>();
        println!("{k:#x} n {} mean {mean:.2} ns/branch; p10 {:.2} p50 {:.2} p90 {:.2}", v.len(), r[r.len()/10], r[r.len()/2], r[r.len()*9/10]);
    }
}
