// Markers: pseudo-probes that say, later in the pipeline, which recorded block a piece of code came from.
// They are gone before code is generated.
#include "pleach.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

// The order is that of `Marker` in src/ffi.rs.
struct PleachMarker {
  uint64_t Key;     // of the recorded function
  uint64_t Context; // differs for each inlined copy; 0 in the function itself
  uint32_t Index;   // of the recorded block, from 1
};

extern "C" {

// A call of a function with a subprogram needs a location, once its caller has one too.
void pleach_ensure_call_locations(LLVMValueRef V) {
  Function &F = *unwrap<Function>(V);
  DISubprogram *SP = F.getSubprogram();
  if (!SP)
    return;
  for (Instruction &I : instructions(F))
    if (isa<CallBase>(I) && !I.getDebugLoc())
      I.setDebugLoc(DILocation::get(F.getContext(), 0, 0, SP));
}

// The marker that an instruction is.
bool pleach_marker(LLVMValueRef V, PleachMarker *Marker) {
  auto *Probe = dyn_cast<PseudoProbeInst>(unwrap<Instruction>(V));
  if (!Probe)
    return false;
  const DILocation *Loc = Probe->getDebugLoc().get();
  Marker->Key = Probe->getFuncGuid()->getZExtValue();
  Marker->Index = static_cast<uint32_t>(Probe->getIndex()->getZExtValue());
  Marker->Context = reinterpret_cast<uintptr_t>(Loc ? Loc->getInlinedAt() : nullptr);
  return true;
}

// Removes the table of what markers stand for.
void pleach_forget_markers(LLVMModuleRef M) {
  if (NamedMDNode *Table = unwrap(M)->getNamedMetadata("pleach.marked"))
    Table->eraseFromParent();
}

void pleach_erase(LLVMValueRef V) { unwrap<Instruction>(V)->eraseFromParent(); }

} // extern "C"
