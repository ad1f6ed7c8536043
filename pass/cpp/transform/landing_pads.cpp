// Keeps what a landing pad receives apart from what follows its invokes.
//
// LLVM's elimination of phis (22.1) uses one register for identical phis of different blocks, and sets it where the first
// of them needs it. If several invokes have the same two successors, as after their block was duplicated, phis of both
// successors may be identical. The register is then set after the call, too late for the landing pad. Values that go
// through memory are not affected.
#include "pleach.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;

// Whether two phis get the same values from the same blocks, but for casts that may need no instruction.
static bool areAlike(const PHINode &One, const PHINode &Other) {
  const auto Plain = [](const Value *V) {
    for (const auto *Cast = dyn_cast<CastInst>(V); Cast; Cast = dyn_cast<CastInst>(V))
      V = Cast->getOperand(0);
    return V;
  };
  return One.getNumIncomingValues() == Other.getNumIncomingValues() && all_of(One.blocks(), [&](BasicBlock *From) {
           const int At = Other.getBasicBlockIndex(From);
           return At >= 0 && Plain(One.getIncomingValueForBlock(From)) == Plain(Other.getIncomingValue(At));
         });
}

// Whether a landing pad's phi is like one of where its invokes return to.
static bool hasTwin(const PHINode &Phi) {
  const auto *Invoke = dyn_cast<InvokeInst>(Phi.getIncomingBlock(0u)->getTerminator());
  return Invoke && any_of(Invoke->getNormalDest()->phis(), [&](const PHINode &Other) { return areAlike(Phi, Other); });
}

bool pleachSeparateLandingPads(Function &F) {
  if (!F.hasPersonalityFn())
    return false;
  SmallVector<PHINode *, 8> Twins;
  for (BasicBlock &BB : F)
    if (BB.isLandingPad())
      for (PHINode &Phi : BB.phis())
        if (Phi.getNumIncomingValues() > 0 && hasTwin(Phi))
          Twins.push_back(&Phi);
  for (PHINode *Phi : Twins)
    DemotePHIToStack(Phi);
  return !Twins.empty();
}
