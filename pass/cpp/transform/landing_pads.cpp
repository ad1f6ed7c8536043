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

namespace {

// Where control goes when an invoke returns, behind blocks that code generation will remove.
struct Arrival {
  BasicBlock *From = nullptr, *At = nullptr;

  explicit Arrival(BasicBlock *Block) {
    const auto *Invoke = dyn_cast<InvokeInst>(Block->getTerminator());
    if (!Invoke)
      return;
    From = Block, At = Invoke->getNormalDest();
    while (At->getSinglePredecessor() && At->sizeWithoutDebug() == 1 && At->getSingleSuccessor()) {
      From = At;
      At = At->getSingleSuccessor();
    }
  }
};

} // namespace

// A value without casts, which may need no instruction.
static const Value *withoutCasts(const Value *V) {
  for (const auto *Cast = dyn_cast<CastInst>(V); Cast; Cast = dyn_cast<CastInst>(V))
    V = Cast->getOperand(0);
  return V;
}

// Whether a landing pad's phi gets what another one gets where all of its invokes return to.
static bool isTwin(const PHINode &Phi, const PHINode &Other) {
  return Phi.getNumIncomingValues() == Other.getNumIncomingValues() && all_of(Phi.blocks(), [&](BasicBlock *Block) {
           const Arrival Returned(Block);
           const int Index = Returned.At == Other.getParent() ? Other.getBasicBlockIndex(Returned.From) : -1;
           return Index >= 0 && withoutCasts(Phi.getIncomingValueForBlock(Block)) ==
                                    withoutCasts(Other.getIncomingValue(Index));
         });
}

static bool hasTwin(const PHINode &Phi) {
  const Arrival Returned(Phi.getIncomingBlock(0u));
  return Returned.At && any_of(Returned.At->phis(), [&](const PHINode &Other) { return isTwin(Phi, Other); });
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
