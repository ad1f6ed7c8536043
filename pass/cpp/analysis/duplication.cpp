// Which blocks may be duplicated, and the kinds of their loops.
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
  // Code generation copies indirect branches itself. Here each copy would need φs in all of its targets. Its edges
  // cannot be split, so the moves for all φs would be executed before every branch.
  if (isa<IndirectBrInst>(I))
    return false;
  auto *Call = dyn_cast<CallBase>(&I);
  if (!Call)
    return true;
  // Assembly may define labels, which must be unique. A call that returns twice returns into only one copy.
  return !Call->cannotDuplicate() && !Call->isConvergent() && !Call->isInlineAsm() &&
         !Call->hasFnAttr(Attribute::ReturnsTwice);
}

// Whether an instruction is the only call of a local function. Such a function is always inlined; with two calls it may
// not be.
bool isOnlyCallOfLocal(const Instruction &I) {
  auto *Call = dyn_cast<CallBase>(&I);
  auto *F = Call ? Call->getCalledFunction() : nullptr;
  return F && F->hasLocalLinkage() && !F->isDeclaration() && F->hasOneUse();
}

// Whether a block increments an induction variable of its loop. Copies would hide the variable from code generation.
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

// Whether each iteration of a loop executes one of many cases, as in interpreters and state machines.
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

// Whether blocks of a function may be duplicated at all. `AlsoWhereSmall`: even if it is optimised for size.
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

// Tight: blocks of innermost loops whose iterations take similar paths. Their values fit in registers and their
// induction variables advance together, which copies may prevent. Dispatching: headers of dispatch loops.
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
