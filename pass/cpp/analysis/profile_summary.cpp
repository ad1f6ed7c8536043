// The profile's summary: the thresholds of hot and cold counts.
#include "pleach.h"
#include "llvm/Analysis/ProfileSummaryInfo.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/ProfileSummary.h"

using namespace llvm;

extern "C" {

// Installs the summary. Passes that have cached the analysis see it only after the profile is revealed. `AtOnce`: they
// see it immediately.
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

} // extern "C"
