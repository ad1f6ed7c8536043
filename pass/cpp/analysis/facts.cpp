// Facts about modules, functions and instructions that the C API does not return.
#include "pleach.h"
#include "llvm/ADT/SCCIterator.h"
#include "llvm/Analysis/CallGraph.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Attributes.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/ProfileData/InstrProf.h"
#include "llvm/TargetParser/Triple.h"
#include <optional>

using namespace llvm;

// Whether a function calls others that call it: a strongly connected component of the call graph.
static bool isMutuallyRecursive(PleachRun &Run, Function &F) {
  if (!Run.MutuallyRecursive) {
    Run.MutuallyRecursive.emplace();
    CallGraph &Calls = Run.MAM.getResult<CallGraphAnalysis>(*F.getParent());
    for (auto Component = scc_begin(&Calls); !Component.isAtEnd(); ++Component)
      if (Component->size() > 1)
        for (const CallGraphNode *Node : *Component)
          Run.MutuallyRecursive->insert(Node->getFunction());
  }
  return Run.MutuallyRecursive->contains(&F);
}

// Whether a block has nothing but a jump.
static bool isEmpty(const BasicBlock &Block) {
  return all_of(Block, [](const Instruction &I) { return I.isTerminator() || I.isDebugOrPseudoInst(); });
}

extern "C" {

void pleach_target(LLVMModuleRef M, PleachTarget *Out) {
  const Triple &T = unwrap(M)->getTargetTriple();
  *Out = {T.isOSBinFormatELF(), T.getArch() == Triple::x86_64, T.getArch() == Triple::aarch64};
}

// Whether a branch only chooses the larger or the smaller of the two values that it compares.
bool pleach_chooses_extreme(LLVMValueRef V) {
  auto *Branch = dyn_cast<BranchInst>(unwrap(V));
  if (!Branch || !Branch->isConditional())
    return false;
  auto *Compared = dyn_cast<CmpInst>(Branch->getCondition());
  const BasicBlock *From = Branch->getParent();
  for (const BasicBlock *Arm : successors(From)) {
    const BasicBlock *Join = Arm->getSingleSuccessor();
    if (!Compared || !Join || Arm->getSinglePredecessor() != From || !is_contained(successors(From), Join) || !isEmpty(*Arm))
      continue;
    auto Phis = Join->phis();
    if (Phis.empty() || std::next(Phis.begin()) != Phis.end())
      continue;
    const Value *There = Phis.begin()->getIncomingValueForBlock(Arm);
    const Value *Here = Phis.begin()->getIncomingValueForBlock(From);
    const Value *First = Compared->getOperand(0), *Second = Compared->getOperand(1);
    if ((There == First && Here == Second) || (There == Second && Here == First))
      return true;
  }
  return false;
}

void pleach_instruction_facts(LLVMValueRef V, PleachInstructionFacts *Facts) {
  Instruction *I = unwrap<Instruction>(V);
  *Facts = {};
  Facts->IsRealInstruction = !I->isDebugOrPseudoInst();
  Facts->IsEHPad = I->isEHPad();
  // The line in the function itself: inlined code may be from another file. A φ's is that of a variable, which is
  // elsewhere.
  if (const DILocation *Loc = isa<PHINode>(I) ? nullptr : I->getDebugLoc().get()) {
    while (const DILocation *Outer = Loc->getInlinedAt())
      Loc = Outer;
    Facts->Line = Loc->getLine();
  }
  auto *Call = dyn_cast<CallBase>(I);
  if (auto *Operation = dyn_cast_or_null<MemIntrinsic>(Call);
      Operation && !Operation->isVolatile() && !isa<ConstantInt>(Operation->getLength()))
    Facts->Call = 4;
  if (!Call || isa<IntrinsicInst>(Call))
    return;
  Facts->MayNotReturn = !Call->doesNotThrow() || !Call->hasFnAttr(Attribute::WillReturn);
  if (Call->isInlineAsm()) {
    Facts->Call = 3;
    return;
  }
  // Calls through aliases, or with a prototype other than the callee's, are direct too.
  if (auto *F = dyn_cast_or_null<Function>(
          Call->getCalledOperand()->stripPointerCastsAndAliases())) {
    Facts->Call = 1;
    Facts->Callee = wrap(F);
  } else {
    Facts->Call = 2;
  }
}

// Whether the linker may replace this definition by another.
bool pleach_is_replaceable(LLVMValueRef V) { return unwrap<Function>(V)->isInterposable(); }

// The identifier of a function in LLVM's value profiles. For local functions it differs from the GUID of the linkage
// name.
uint64_t pleach_value_profile_id(LLVMValueRef F) {
  return IndexedInstrProf::ComputeHash(getPGOFuncName(*unwrap<Function>(F)));
}

// Whether a call is the only one of a local function and may be inlined; writes the facts that decide whether it should
// be. Mutually recursive functions are left to the inliner, which works bottom-up: told to begin with one call, it would
// inline through the recursion before the callees have grown, and copy them again and again.
bool pleach_only_call(PleachRun *Run, LLVMValueRef V, PleachOnlyCall *Out) {
  auto *Call = dyn_cast<CallBase>(unwrap<Instruction>(V));
  Function *Callee = Call ? Call->getCalledFunction() : nullptr;
  if (!Callee || Callee->isDeclaration() || !Callee->hasLocalLinkage() || !Callee->hasOneUse())
    return false;
  Function *Caller = Call->getFunction();
  if (Callee == Caller || Call->isNoInline() || Caller->hasOptNone() || Caller->hasMinSize() ||
      Callee->hasMinSize() || Callee->hasFnAttribute(Attribute::Cold) || Callee->isPresplitCoroutine() ||
      isMutuallyRecursive(*Run, *Callee))
    return false;
  auto &FAM =
      Run->MAM.getResult<FunctionAnalysisManagerModuleProxy>(*Caller->getParent()).getManager();
  if (!FAM.getResult<TargetIRAnalysis>(*Callee).areInlineCompatible(Caller, Callee) ||
      !AttributeFuncs::areInlineCompatible(*Caller, *Callee))
    return false;
  *Out = {Callee->getInstructionCount(), 0};
  for (Instruction &I : instructions(*Callee))
    if (auto *Alloca = dyn_cast<AllocaInst>(&I)) {
      std::optional<TypeSize> Size = Alloca->getAllocationSize(Callee->getDataLayout());
      if (!Alloca->isStaticAlloca() || !Size || Size->isScalable())
        return false;
      Out->StackBytes += Size->getFixedValue();
    }
  return true;
}

} // extern "C"
