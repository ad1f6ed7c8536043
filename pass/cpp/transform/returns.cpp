// Returns after calls that code generation may emit as tail calls.
#include "pleach.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace {

// The result that `Block` returns, if it does nothing else: null for none, and a phi of the block otherwise.
bool onlyReturns(BasicBlock &Block, PHINode *&Result) {
  auto *Return = dyn_cast<ReturnInst>(Block.getTerminator());
  if (!Return || Block.hasAddressTaken() || &Block == &Block.getParent()->getEntryBlock())
    return false;
  Result = dyn_cast_or_null<PHINode>(Return->getReturnValue());
  if (Return->getReturnValue() && (!Result || Result->getParent() != &Block))
    return false;
  return Result ? &Block.front() == Result && Result->getNextNode() == Return : &Block.front() == Return;
}

// Whether `Block` ends with a call in tail position and a jump to a block that returns `Result`.
bool endsWithTailCall(BasicBlock &Block, PHINode *Result) {
  auto *Jump = dyn_cast<BranchInst>(Block.getTerminator());
  auto *Call = Jump && Jump->isUnconditional() ? dyn_cast_or_null<CallInst>(Jump->getPrevNode()) : nullptr;
  if (!Call || !Call->isTailCall())
    return false;
  if (Call->getCallingConv() != CallingConv::C && Call->getCallingConv() != CallingConv::Fast)
    return false;
  if (!Result)
    return Call->use_empty();
  const Function &Caller = *Block.getParent();
  for (Attribute::AttrKind Extension : {Attribute::ZExt, Attribute::SExt})
    if (Caller.hasRetAttribute(Extension) != Call->hasRetAttr(Extension))
      return false;
  return Call->hasOneUse() && Result->getIncomingValueForBlock(&Block) == Call;
}

} // namespace

extern "C" {

// Lets calls in tail position return where they are, as code generation does before it emits them (CodeGenPrepare's
// dupRetToEnableTailCallOpts). Otherwise, the block that they share has no code, and nothing shows that it ran.
bool pleach_return_after_tail_calls(LLVMModuleRef M) {
  bool Changed = false;
  for (Function &F : *unwrap(M)) {
    if (F.isDeclaration() || F.hasOptNone() || F.getFnAttribute("disable-tail-calls").getValueAsBool())
      continue;
    for (BasicBlock &Block : make_early_inc_range(F)) {
      PHINode *Result;
      if (!onlyReturns(Block, Result))
        continue;
      SmallVector<BasicBlock *, 8> Callers;
      for (BasicBlock *Predecessor : predecessors(&Block))
        if (endsWithTailCall(*Predecessor, Result))
          Callers.push_back(Predecessor);
      for (BasicBlock *Caller : Callers)
        FoldReturnIntoUncondBranch(cast<ReturnInst>(Block.getTerminator()), &Block, Caller);
      Changed |= !Callers.empty();
      if (!Callers.empty() && pred_empty(&Block))
        Block.eraseFromParent();
    }
  }
  return Changed;
}

} // extern "C"
