// Turns calls of `mempcpy` with known lengths into `memcpy`, as InstCombine does, which would lose the lengths.
#include "pleach.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"

using namespace llvm;

bool pleachExpandMempcpy(Function &F, const TargetLibraryInfo &TLI) {
  bool Changed = false;
  for (Instruction &I : make_early_inc_range(instructions(F))) {
    auto *Call = dyn_cast<CallInst>(&I);
    MDNode *Lengths = Call ? Call->getMetadata(PleachLengthsMetadata) : nullptr;
    LibFunc Known;
    if (!Lengths || !TLI.getLibFunc(*Call, Known) || Known != LibFunc_mempcpy || !TLI.has(Known) ||
        Call->isMustTailCall())
      continue;
    IRBuilder<> Builder(Call);
    Value *Destination = Call->getArgOperand(0);
    Value *Length = Call->getArgOperand(2);
    CallInst *Copy = Builder.CreateMemCpy(Destination, Align(1), Call->getArgOperand(1), Align(1), Length);
    Copy->setMetadata(LLVMContext::MD_prof, Lengths);
    Call->replaceAllUsesWith(Builder.CreateInBoundsGEP(Builder.getInt8Ty(), Destination, Length));
    Call->eraseFromParent();
    Changed = true;
  }
  return Changed;
}
