// Keeps the lengths of library calls until LLVM gives each frequent length code of its own. InstCombine would lose them: it
// replaces mempcpy by memcpy, and memcmp by bcmp where only equality is asked for, which may show after inlining only, as
// in comparisons of strings in C++. And SimplifyCFG would merge the code for frequent lengths again, which is made at the end
// therefore.
#include "pleach.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Instrumentation/PGOInstrumentation.h"
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

// The call of bcmp that replaces a call of memcmp, which is erased; null if more than equality is asked for.
static CallInst *replaceByBcmp(CallInst &Call, const TargetLibraryInfo &TLI) {
  if (Call.isMustTailCall() || !isOnlyUsedInZeroEqualityComparison(&Call))
    return nullptr;
  IRBuilder<> Builder(&Call);
  Value *Compared = emitBCmp(Call.getArgOperand(0), Call.getArgOperand(1), Call.getArgOperand(2), Builder,
                             Call.getDataLayout(), &TLI);
  auto *Comparison = dyn_cast_or_null<CallInst>(Compared);
  if (!Comparison)
    return nullptr;
  Comparison->setTailCallKind(Call.getTailCallKind());
  Call.replaceAllUsesWith(Comparison);
  Call.eraseFromParent();
  return Comparison;
}

static PreservedAnalyses preserved(bool Changed) {
  if (!Changed)
    return PreservedAnalyses::all();
  PreservedAnalyses Kept;
  Kept.preserveSet<CFGAnalyses>();
  return Kept;
}

// Metadata of calls of memcmp that are no builtins only until their lengths are revealed, and an attribute that says
// so: where equal calls become one, it stays, and the metadata does not.
static constexpr char KeptLengthsMetadata[] = "pleach.kept.lengths";
static constexpr char KeptLengthsAttribute[] = "pleach-kept-lengths";

static void makeBuiltin(CallInst &Call) {
  Call.setMetadata(KeptLengthsMetadata, nullptr);
  Call.removeFnAttr(KeptLengthsAttribute);
  Call.removeFnAttr(Attribute::NoBuiltin);
}

static bool isKept(const CallInst &Call) { return Call.getAttributes().hasFnAttr(KeptLengthsAttribute); }

// A call with lengths whose function is the C library's.
static bool isKnown(CallInst &Call, const TargetLibraryInfo &TLI, LibFunc &Known) {
  return Call.getMetadata(PleachLengthsMetadata) && TLI.getLibFunc(Call, Known) && TLI.has(Known) &&
         !Call.isMustTailCall();
}

PreservedAnalyses PleachKeepLengthsPass::run(Function &F, FunctionAnalysisManager &FAM) {
  const TargetLibraryInfo &TLI = FAM.getResult<TargetLibraryAnalysis>(F);
  bool Changed = false;
  for (Instruction &I : make_early_inc_range(instructions(F))) {
    auto *Call = dyn_cast<CallInst>(&I);
    LibFunc Known;
    if (!Call || (!Call->hasMetadata() && !isKept(*Call)))
      continue;
    if (isKept(*Call)) {
      // With a constant length the call is LLVM's again.
      if (isa<Constant>(Call->getArgOperand(2))) {
        makeBuiltin(*Call);
        Changed = true;
      }
    } else if (isKnown(*Call, TLI, Known)) {
      MDNode *Lengths = Call->getMetadata(PleachLengthsMetadata);
      if (Known == LibFunc_mempcpy) {
        replaceByMemcpy(*Call, *Lengths);
        Changed = true;
      } else if (Known == LibFunc_memcmp && !IsBeforeLink && !isa<Constant>(Call->getArgOperand(2))) {
        Call->setMetadata(PleachLengthsMetadata, nullptr);
        Call->setMetadata(KeptLengthsMetadata, Lengths);
        Call->addFnAttr(Attribute::NoBuiltin);
        Call->addFnAttr(Attribute::get(F.getContext(), KeptLengthsAttribute));
        Changed = true;
      }
    }
  }
  return preserved(Changed);
}

PreservedAnalyses PleachRevealLengthsPass::run(Function &F, FunctionAnalysisManager &FAM) {
  const TargetLibraryInfo &TLI = FAM.getResult<TargetLibraryAnalysis>(F);
  bool Changed = false;
  for (Instruction &I : make_early_inc_range(instructions(F))) {
    auto *Call = dyn_cast<CallInst>(&I);
    if (!Call || (!Call->hasMetadata() && !isKept(*Call)))
      continue;
    MDNode *Lengths = Call->getMetadata(PleachLengthsMetadata);
    Call->setMetadata(PleachLengthsMetadata, nullptr);
    if (isKept(*Call)) {
      Lengths = Call->getMetadata(KeptLengthsMetadata);
      makeBuiltin(*Call);
      Changed = true;
      if (CallInst *Comparison = replaceByBcmp(*Call, TLI))
        Call = Comparison;
    }
    if (Lengths) {
      Call->setMetadata(LLVMContext::MD_prof, Lengths);
      Changed = true;
    }
  }
  return preserved(Changed);
}

// Whether an instruction may be what LLVM's pass specialises. Of calls with metadata, most have none of values.
static bool mayHaveLengths(const Instruction &I) {
  const auto *Call = dyn_cast<CallInst>(&I);
  return Call && !Call->isIndirectCall() && Call->getMetadata(LLVMContext::MD_prof);
}

PreservedAnalyses PleachSpecialiseLengthsPass::run(Function &F, FunctionAnalysisManager &FAM) {
  return any_of(instructions(F), mayHaveLengths) ? PGOMemOPSizeOpt().run(F, FAM) : PreservedAnalyses::all();
}
