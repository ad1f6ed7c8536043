// Block frequencies and branch probabilities, as LLVM computes them from branch weights.
#include "pleach.h"
#include "llvm/Analysis/BlockFrequencyInfo.h"
#include "llvm/Analysis/BranchProbabilityInfo.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/ProfileSummary.h"
#include "llvm/Transforms/Instrumentation/PGOInstrumentation.h"

using namespace llvm;

extern "C" {

// Writes the executions of each block and the probability of each successor slot. False if there is no entry count.
bool pleach_frequencies(LLVMValueRef V, double *Counts, double *Probabilities) {
  Function &F = *unwrap<Function>(V);
  auto Entry = F.getEntryCount();
  if (!Entry)
    return false;
  DominatorTree DT(F);
  LoopInfo LI(DT);
  BranchProbabilityInfo BPI(F, LI);
  BlockFrequencyInfo BFI(F, BPI, LI);
  double EntryFrequency = static_cast<double>(BFI.getEntryFreq().getFrequency());
  if (EntryFrequency == 0)
    return false;
  auto Executions = [&](const BasicBlock *BB) {
    return static_cast<double>(BFI.getBlockFreq(BB).getFrequency()) / EntryFrequency *
           static_cast<double>(Entry->getCount());
  };
  for (BasicBlock &BB : F) {
    *Counts++ = Executions(&BB);
    for (unsigned S = 0, E = BB.getTerminator()->getNumSuccessors(); S != E; ++S) {
      BranchProbability P = BPI.getEdgeProbability(&BB, S);
      *Probabilities++ = static_cast<double>(P.getNumerator()) / P.getDenominator();
    }
  }
  return true;
}

// The share of the program's block executions that a function has; 0 without a profile.
double pleach_execution_share(LLVMValueRef V) {
  Function &F = *unwrap<Function>(V);
  auto Entry = F.getEntryCount();
  std::unique_ptr<ProfileSummary> Summary(ProfileSummary::getFromMD(F.getParent()->getProfileSummary(/*IsCS=*/false)));
  if (!Entry || !Summary || Summary->getTotalCount() == 0)
    return 0;
  DominatorTree DT(F);
  LoopInfo LI(DT);
  BranchProbabilityInfo BPI(F, LI);
  BlockFrequencyInfo BFI(F, BPI, LI);
  double Calls = static_cast<double>(Entry->getCount()) /
                 static_cast<double>(std::max<uint64_t>(BFI.getEntryFreq().getFrequency(), 1));
  double Executions = 0;
  for (const BasicBlock &BB : F)
    Executions += static_cast<double>(BFI.getBlockFreq(&BB).getFrequency()) * Calls;
  return Executions / static_cast<double>(Summary->getTotalCount());
}

// Sets a module flag of which linking keeps the largest value.
void pleach_set_max_module_flag(LLVMModuleRef M, const char *Name, size_t Size, uint32_t Value) {
  unwrap(M)->setModuleFlag(Module::Max, StringRef(Name, Size), Value);
}

// Sets the counts of irreducible loop headers and of targets of indirect branches, whose frequencies branch weights do
// not determine. clang's own profiles do the same.
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

// The blocks of a function that code generation regards as cold, and splits off if splitting is enabled; returns their
// number. `Cutoff`: parts per million of all executions, as for -mfs-psi-cutoff. `Found` has room for all blocks.
size_t pleach_unsampled_blocks(LLVMValueRef V, uint32_t Cutoff, LLVMBasicBlockRef *Found) {
  Function &F = *unwrap<Function>(V);
  ProfileSummaryInfo PSI(*F.getParent());
  DominatorTree DT(F);
  LoopInfo LI(DT);
  BranchProbabilityInfo BPI(F, LI);
  BlockFrequencyInfo BFI(F, BPI, LI);
  size_t Number = 0;
  for (BasicBlock &BB : F) {
    auto Count = BFI.getBlockProfileCount(&BB);
    if (Count && PSI.isColdCountNthPercentile(static_cast<int>(Cutoff), *Count))
      Found[Number++] = wrap(&BB);
  }
  return Number;
}

} // extern "C"
