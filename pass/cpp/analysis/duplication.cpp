// Which blocks may be duplicated, and in which loops they are.
#include "pleach.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace {

bool mayCopy(const Instruction &I) {
  if (I.getType()->isTokenTy() || I.isEHPad() || isa<AllocaInst>(I))
    return false;
  if (isa<CallBrInst>(I) || isa<CleanupReturnInst>(I) || isa<CatchReturnInst>(I))
    return false;
  // Code generation copies indirect branches itself. Here each copy would need φs in all that it may lead to, and as its edges cannot be
  // split, the moves that those become would all be made before every branch.
  if (isa<IndirectBrInst>(I))
    return false;
  auto *Call = dyn_cast<CallBase>(&I);
  if (!Call)
    return true;
  // Assembly may define labels, which must stay unique. Calls that return twice come back into one copy only.
  return !Call->cannotDuplicate() && !Call->isConvergent() && !Call->isInlineAsm() &&
         !Call->hasFnAttr(Attribute::ReturnsTwice);
}

// A local function with this one call is inlined for sure; with two it may not be.
bool isOnlyCallOfLocal(const Instruction &I) {
  auto *Call = dyn_cast<CallBase>(&I);
  auto *F = Call ? Call->getCalledFunction() : nullptr;
  return F && F->hasLocalLinkage() && !F->isDeclaration() && F->hasOneUse();
}

// Whether a block advances a variable of its loop: copies would hide from code generation that the loop has one.
bool advances(const BasicBlock &BB, const Loop &L) {
  const BasicBlock *Latch = L.getLoopLatch();
  if (!Latch)
    return false;
  for (const PHINode &Phi : L.getHeader()->phis()) {
    auto *Next = dyn_cast<Instruction>(Phi.getIncomingValueForBlock(Latch));
    if (Next && Next->getParent() == &BB && (isa<BinaryOperator>(Next) || isa<GetElementPtrInst>(Next)) &&
        llvm::is_contained(Next->operands(), &Phi))
      return true;
  }
  return false;
}

// Whether a loop does one of many things in each iteration, as interpreters and state machines do.
bool dispatches(const Loop &L) {
  return llvm::any_of(L.blocks(), [](BasicBlock *BB) {
    return isa<SwitchInst>(BB->getTerminator()) || isa<IndirectBrInst>(BB->getTerminator());
  });
}

bool hasCalls(const Loop &L) {
  for (BasicBlock *BB : L.blocks())
    for (Instruction &I : *BB)
      if (isa<CallBase>(I) && !isa<IntrinsicInst>(I))
        return true;
  return false;
}

} // namespace

extern "C" {

// Whether blocks of a function may be duplicated at all. `AlsoWhereSmall`: also where code is to be small.
bool pleach_may_duplicate(LLVMValueRef V, bool AlsoWhereSmall) {
  Function &F = *unwrap<Function>(V);
  return !F.hasOptNone() && (AlsoWhereSmall || !F.hasOptSize()) && !F.hasFnAttribute(Attribute::Naked) &&
         !F.isPresplitCoroutine() && !F.callsFunctionThatReturnsTwice();
}

// Which blocks may be duplicated. `Early`: before inlining and vectorisation, which copies must not prevent.
void pleach_duplicable(LLVMValueRef V, bool Early, uint8_t *Duplicable) {
  Function &F = *unwrap<Function>(V);
  DominatorTree DT(F);
  LoopInfo LI(DT);
  for (BasicBlock &BB : F) {
    bool May = !BB.isEntryBlock() && !BB.hasAddressTaken() && !BB.isEHPad();
    if (Loop *L = LI.getLoopFor(&BB); L && L->isInnermost())
      May &= Early ? hasCalls(*L) : dispatches(*L) || !advances(BB, *L);
    for (Instruction &I : BB)
      May = May && mayCopy(I) && !(Early && isOnlyCallOfLocal(I));
    *Duplicable++ = May;
  }
}

// Tight: blocks of innermost loops that do the same in each iteration. Their values fit registers and their variables advance in step, which
// copies may spoil. Dispatching: headers of loops that do one of many things in each iteration.
void pleach_loops(LLVMValueRef V, uint8_t *Tight, uint8_t *Dispatching) {
  Function &F = *unwrap<Function>(V);
  DominatorTree DT(F);
  LoopInfo LI(DT);
  for (BasicBlock &BB : F) {
    Loop *L = LI.getLoopFor(&BB);
    const bool Dispatches = L && dispatches(*L);
    *Tight++ = L && L->isInnermost() && !Dispatches;
    *Dispatching++ = Dispatches && L->getHeader() == &BB;
  }
}

} // extern "C"
