// What `use` needs beyond LLVM's C API: counts, weights, value profiles and the profile summary.
#include "pleach.h"
#include "llvm/Analysis/BlockFrequencyInfo.h"
#include "llvm/Analysis/BranchProbabilityInfo.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ProfileSummaryInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Attributes.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/ProfDataUtils.h"
#include "llvm/IR/ProfileSummary.h"
#include "llvm/ProfileData/InstrProf.h"
#include "llvm/Transforms/Instrumentation/PGOInstrumentation.h"

using namespace llvm;

// The order is that of `SummaryEntry` in src/ffi.rs.
struct PleachSummaryEntry {
  uint32_t Cutoff; // parts per million
  uint64_t MinCount;
  uint64_t NumCounts;
};

struct PleachSummary {
  uint64_t TotalCount, MaxCount, MaxInternalCount, MaxFunctionCount;
  uint32_t NumCounts, NumFunctions;
  const PleachSummaryEntry *Entries;
  size_t NumEntries;
};

extern "C" {

bool pleach_has_profile_summary(LLVMModuleRef M) {
  return unwrap(M)->getProfileSummary(/*IsCS=*/false) != nullptr;
}

// Installs the summary. Passes that asked for it before do not see it until the inliner may know the profile, or where that is past, at once.
void pleach_set_profile_summary(LLVMModuleRef Ref, PleachRun *Run, const PleachSummary *S, bool AtOnce) {
  Module *M = unwrap(Ref);
  SummaryEntryVector Detailed;
  for (size_t I = 0; I < S->NumEntries; ++I)
    Detailed.push_back({S->Entries[I].Cutoff, S->Entries[I].MinCount, S->Entries[I].NumCounts});
  ProfileSummary Summary(ProfileSummary::PSK_Instr, Detailed, S->TotalCount, S->MaxCount,
                         S->MaxInternalCount, S->MaxFunctionCount, S->NumCounts,
                         S->NumFunctions);
  ProfileSummaryInfo &Known = Run->MAM.getResult<ProfileSummaryAnalysis>(*M);
  M->setProfileSummary(Summary.getMD(M->getContext()), ProfileSummary::PSK_Instr);
  if (AtOnce)
    Known.refresh();
  Run->Summary = std::make_unique<ProfileSummaryInfo>(*M);
}

bool pleach_is_hot_count(PleachRun *Run, uint64_t Count) {
  return Run->Summary && Run->Summary->isHotCount(Count);
}

bool pleach_is_cold_count(PleachRun *Run, uint64_t Count) {
  return Run->Summary && Run->Summary->isColdCount(Count);
}

void pleach_set_entry_count(LLVMValueRef F, uint64_t Count) {
  unwrap<Function>(F)->setEntryCount(Count, Function::PCT_Real);
}

// The inliner reads these; clang's own profiles set them in the same two cases.
void pleach_mark_hot(LLVMValueRef F) {
  unwrap<Function>(F)->addFnAttr(PleachHotAttribute);
}
void pleach_mark_cold(LLVMValueRef V) {
  Function *F = unwrap<Function>(V);
  if (!F->hasFnAttribute(Attribute::Hot))
    F->addFnAttr(Attribute::Cold);
}

// Into .text.unlikely, without a word on how to compile it.
void pleach_place_apart(LLVMValueRef F) {
  if (!unwrap<Function>(F)->hasSection())
    unwrap<Function>(F)->setSectionPrefix("unlikely");
}

// Has a call inlined if it is the only one of a local function, as the optimiser would without a
// profile: within the bounds that its inliner has on code and on stack for such calls.
void pleach_inline_only_call(PleachRun *Run, LLVMValueRef V) {
  constexpr unsigned MostInstructions = 3000; // its bonus of 15 000 for them, at 5 an instruction
  constexpr uint64_t MostStack = 1024;        // what it lets callers that may recurse grow by
  auto *Call = dyn_cast<CallBase>(unwrap<Instruction>(V));
  Function *Callee = Call ? Call->getCalledFunction() : nullptr;
  if (!Callee || Callee->isDeclaration() || !Callee->hasLocalLinkage() || !Callee->hasOneUse())
    return;
  Function *Caller = Call->getFunction();
  if (Callee == Caller || Call->isNoInline() || Caller->hasOptNone() || Caller->hasMinSize() ||
      Callee->hasMinSize() || Callee->hasFnAttribute(Attribute::Cold) ||
      Callee->isPresplitCoroutine() || Callee->getInstructionCount() > MostInstructions)
    return;
  auto &FAM =
      Run->MAM.getResult<FunctionAnalysisManagerModuleProxy>(*Caller->getParent()).getManager();
  if (!FAM.getResult<TargetIRAnalysis>(*Callee).areInlineCompatible(Caller, Callee) ||
      !AttributeFuncs::areInlineCompatible(*Caller, *Callee))
    return;
  uint64_t Stack = 0;
  for (Instruction &I : instructions(*Callee))
    if (auto *Alloca = dyn_cast<AllocaInst>(&I)) {
      std::optional<TypeSize> Size = Alloca->getAllocationSize(Callee->getDataLayout());
      if (!Alloca->isStaticAlloca() || !Size || Size->isScalable())
        return;
      Stack += Size->getFixedValue();
    }
  if (Stack > MostStack)
    return;
  Call->addFnAttr(Attribute::AlwaysInline);
}

void pleach_set_branch_weights(LLVMValueRef Terminator, const uint64_t *Weights, size_t Count) {
  setFittedBranchWeights(*unwrap<Instruction>(Terminator), ArrayRef(Weights, Count),
                         /*IsExpected=*/false);
}

// Of an unpredictable branch LLVM forms selects at up to the price of a misprediction, and leaves
// them selects. How many in a thousand are mispredicted is for us to know. Whether it was a branch
// of the two ways that the profile knows.
bool pleach_mark_unpredictable(LLVMValueRef Terminator, uint32_t Permille) {
  auto *Branch = dyn_cast<BranchInst>(unwrap<Instruction>(Terminator));
  if (!Branch || !Branch->isConditional())
    return false;
  Type *T = Type::getInt32Ty(Branch->getContext());
  auto *Rate = ConstantAsMetadata::get(ConstantInt::get(T, Permille));
  Branch->setMetadata(LLVMContext::MD_unpredictable, MDNode::get(Branch->getContext(), {Rate}));
  return true;
}

// Branch weights alone do not determine frequencies in an irreducible loop, nor behind an indirect
// branch: clang's own profiles give such headers their counts too.
void pleach_set_irreducible_headers(LLVMModuleRef Ref, LLVMValueRef V, const uint64_t *Counts,
                                    size_t Count) {
  Function &F = *unwrap<Function>(V);
  DominatorTree DT(F);
  LoopInfo LI(DT);
  BranchProbabilityInfo BPI(F, LI);
  BlockFrequencyInfo BFI(F, BPI, LI);
  size_t Index = 0;
  for (BasicBlock &BB : F) {
    if (Index == Count)
      break;
    bool IndirectTarget = llvm::any_of(
        predecessors(&BB), [](BasicBlock *P) { return isa<IndirectBrInst>(P->getTerminator()); });
    if (IndirectTarget || BFI.isIrrLoopHeader(&BB))
      setIrrLoopHeaderMetadata(unwrap(Ref), BB.getTerminator(), Counts[Index]);
    ++Index;
  }
}

// The identifier by which LLVM's value profiles name a function: it differs from the GUID of the
// linkage name for functions of local linkage.
uint64_t pleach_value_profile_id(LLVMValueRef F) {
  return IndexedInstrProf::ComputeHash(getPGOFuncName(*unwrap<Function>(F)));
}

void pleach_set_call_targets(LLVMModuleRef M, LLVMValueRef Call, const uint64_t *Targets,
                             const uint64_t *Counts, size_t Count, uint64_t Total) {
  SmallVector<InstrProfValueData, 8> Values;
  for (size_t I = 0; I < Count; ++I)
    Values.push_back({Targets[I], Counts[I]});
  annotateValueSite(*unwrap(M), *unwrap<Instruction>(Call), Values, Total, IPVK_IndirectCallTarget,
                    static_cast<uint32_t>(Count));
}

} // extern "C"
