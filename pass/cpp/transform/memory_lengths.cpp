// Replaces calls with known lengths as InstCombine does, which would lose the lengths: mempcpy by memcpy, and memcmp by
// bcmp where the result is only compared with zero.
#include "pleach.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BuildLibCalls.h"

using namespace llvm;

static void replaceByMemcpy(CallInst &Call, MDNode &Lengths) {
  IRBuilder<> Builder(&Call);
  Value *Destination = Call.getArgOperand(0);
  Value *Length = Call.getArgOperand(2);
  CallInst *Copy = Builder.CreateMemCpy(Destination, Align(1), Call.getArgOperand(1), Align(1), Length);
  Copy->setMetadata(LLVMContext::MD_prof, &Lengths);
  Call.replaceAllUsesWith(Builder.CreateInBoundsGEP(Builder.getInt8Ty(), Destination, Length));
  Call.eraseFromParent();
}

static bool replaceByBcmp(CallInst &Call, MDNode &Lengths, const TargetLibraryInfo &TLI) {
  if (!isOnlyUsedInZeroEqualityComparison(&Call))
    return false;
  IRBuilder<> Builder(&Call);
  Value *Compared = emitBCmp(Call.getArgOperand(0), Call.getArgOperand(1), Call.getArgOperand(2), Builder,
                             Call.getDataLayout(), &TLI);
  auto *Comparison = dyn_cast_or_null<CallInst>(Compared);
  if (!Comparison)
    return false;
  Comparison->setTailCallKind(Call.getTailCallKind());
  Comparison->setMetadata(PleachLengthsMetadata, &Lengths);
  Call.replaceAllUsesWith(Comparison);
  Call.eraseFromParent();
  return true;
}

PreservedAnalyses PleachKeepLengthsPass::run(Function &F, FunctionAnalysisManager &FAM) {
  const TargetLibraryInfo &TLI = FAM.getResult<TargetLibraryAnalysis>(F);
  bool Changed = false;
  for (Instruction &I : make_early_inc_range(instructions(F))) {
    auto *Call = dyn_cast<CallInst>(&I);
    MDNode *Lengths = Call ? Call->getMetadata(PleachLengthsMetadata) : nullptr;
    LibFunc Known;
    if (!Lengths || Call->isMustTailCall() || !TLI.getLibFunc(*Call, Known) || !TLI.has(Known))
      continue;
    if (Known == LibFunc_mempcpy) {
      replaceByMemcpy(*Call, *Lengths);
      Changed = true;
    } else if (Known == LibFunc_memcmp) {
      Changed |= replaceByBcmp(*Call, *Lengths, TLI);
    }
  }
  if (!Changed)
    return PreservedAnalyses::all();
  PreservedAnalyses Kept;
  Kept.preserveSet<CFGAnalyses>();
  return Kept;
}
