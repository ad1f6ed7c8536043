use super::super::layout::HEADER;
use super::*;
use pleach_annotate::id::{FunctionGuid, ModuleHash};
use tempfile::TempDir;

fn id(guid: u64) -> FunctionId {
    FunctionId {
        guid: FunctionGuid(guid),
        module: ModuleHash(0),
    }
}

/// A file of two functions, changed by someone who gets the checksums of index and header right.
fn forged(change: impl FnOnce(&mut [IndexEntry; 2], &mut [u8])) -> (TempDir, PathBuf) {
    let function = |guid| FunctionProfile {
        id: id(guid),
        cfg_hash: CfgHash(0),
        name: "f".into(),
        samples: 1,
        blocks: vec![1],
        edges: vec![],
        ..FunctionProfile::default()
    };
    let dir = TempDir::new().expect("a temporary directory");
    let path = dir.path().join("p.pleach");
    let profile = Profile {
        functions: vec![function(1), function(2)],
        ..Profile::default()
    };
    let mut bytes = crate::write::encode(&profile).expect("can be stored").parts().concat();
    let mut header = Header::decode(&bytes).expect("a header");
    let (index, records) = bytes[HEADER..].split_at_mut(2 * ENTRY);
    let mut entries = [IndexEntry::decode(index), IndexEntry::decode(&index[ENTRY..])];
    change(&mut entries, records);
    let mut encoded = Vec::new();
    entries.iter().for_each(|e| e.encode(&mut encoded));
    index.copy_from_slice(&encoded);
    header.index.checksum = xxh3_64(&encoded);
    bytes[..HEADER].copy_from_slice(&header.encode());
    std::fs::write(&path, bytes).expect("written");
    (dir, path)
}

fn error_of(path: &Path) -> String {
    let error = ProfileFile::open(path).and_then(|f| f.lookup(id(1), CfgHash(0)));
    error.expect_err("an error").to_string()
}

#[test]
fn an_unforged_file_is_read() {
    let (_dir, path) = forged(|_, _| {});
    let file = ProfileFile::open(&path).expect("opened");
    assert_eq!(file.functions().filter(Result::is_ok).count(), 2);
}

#[test]
fn an_index_out_of_order_is_refused() {
    let (_dir, path) = forged(|entries, _| entries.swap(0, 1));
    assert!(error_of(&path).contains("not sorted"));
    let (_dir, path) = forged(|entries, _| entries[1].id = entries[0].id);
    assert!(error_of(&path).contains("not sorted"));
}

#[test]
fn a_record_out_of_bounds_is_refused() {
    for (offset, length) in [(0, u32::MAX), (1 << 40, 1), (u64::MAX, 2)] {
        let (_dir, path) = forged(|entries, _| (entries[0].offset, entries[0].length) = (offset, length));
        assert!(error_of(&path).contains("out of bounds"));
    }
}

#[test]
fn another_functions_record_is_refused() {
    let (_dir, path) = forged(|entries, _| {
        let (a, b) = (entries[0], entries[1]);
        (entries[0].offset, entries[0].checksum) = (b.offset, b.checksum);
        (entries[1].offset, entries[1].checksum) = (a.offset, a.checksum);
    });
    assert!(error_of(&path).contains("wrong checksum"));
}

#[test]
fn a_senseless_record_is_refused() {
    let (_dir, path) = forged(|entries, records| {
        let record = &mut records[..entries[0].length as usize];
        // The length of the name.
        record[0] = 0x7f;
        entries[0].checksum = record_checksum(entries[0].id, entries[0].cfg_hash, record);
    });
    assert!(error_of(&path).contains("ends too early"));
}
