// Markers: debug labels that say which recorded block code comes from.
//
// A label is no instruction: optimisations do not see it. A pseudo-probe would keep SimplifyCFG from merging branches,
// and its side effect would hide trip counts from loop optimisations.
#include "pleach.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/DebugProgramInstruction.h"
#include "llvm/IR/Function.h"

using namespace llvm;

namespace {

// The label's name is this prefix and the key, its line is the block.
constexpr char Prefix[] = "pleach.";

bool read(const DbgLabelRecord &Record, PleachMarker &Out) {
  StringRef Name = Record.getLabel()->getName();
  if (!Name.consume_front(Prefix) || Name.getAsInteger(16, Out.Key))
    return false;
  const DILocation *Location = Record.getDebugLoc().get();
  Out.Index = Record.getLabel()->getLine();
  Out.InlinedAt = wrap(Location ? Location->getInlinedAt() : nullptr);
  return true;
}

} // namespace

extern "C" {

// Marks a block of a function with a subprogram; not a catchswitch block, which has no place for it.
void pleach_insert_marker(LLVMBasicBlockRef V, uint64_t Key, uint32_t Index) {
  BasicBlock *Block = unwrap(V);
  auto Position = Block->getFirstInsertionPt();
  if (Position == Block->end())
    return;
  DISubprogram *Scope = Block->getParent()->getSubprogram();
  LLVMContext &C = Block->getContext();
  auto *Label = DILabel::get(C, Scope, Prefix + utohexstr(Key), Scope->getFile(), Index, /*Column=*/0,
                             /*IsArtificial=*/true, /*CoroSuspendIdx=*/std::nullopt);
  auto *Record = new DbgLabelRecord(Label, DebugLoc(DILocation::get(C, 0, 0, Scope)));
  Block->insertDbgRecordBefore(Record, Position);
}

// Removes a function's markers. Writes up to `Capacity` of them, in order; returns their number, and removes none if it
// exceeds the capacity.
size_t pleach_take_markers(LLVMValueRef V, PleachMarker *Found, size_t Capacity) {
  Function *F = unwrap<Function>(V);
  SmallVector<DbgRecord *, 64> Taken;
  uint32_t Number = 0;
  for (BasicBlock &Block : *F) {
    for (Instruction &I : Block)
      for (DbgRecord &Record : I.getDbgRecordRange()) {
        PleachMarker Marker;
        auto *Label = dyn_cast<DbgLabelRecord>(&Record);
        if (!Label || !read(*Label, Marker))
          continue;
        Marker.Block = Number;
        if (Taken.size() < Capacity)
          Found[Taken.size()] = Marker;
        Taken.push_back(Label);
      }
    ++Number;
  }
  if (Taken.size() <= Capacity)
    for (DbgRecord *Record : Taken)
      Record->eraseFromParent();
  return Taken.size();
}

} // extern "C"
