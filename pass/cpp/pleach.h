// Shared by the shim's files.
#ifndef PLEACH_SHIM_H
#define PLEACH_SHIM_H

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/ProfileSummaryInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/PassManager.h"
#include "llvm/Pass.h"
#include <memory>

// What Rust hands back to the shim while one module runs.
struct PleachRun {
  llvm::ModuleAnalysisManager &MAM;
  // What counts are hot and cold, once the profile's summary is set: passes may learn it later.
  std::unique_ptr<llvm::ProfileSummaryInfo> Summary = nullptr;
};

// Functions that are called often have this attribute until the inliner may know the profile.
constexpr char PleachHotAttribute[] = "pleach-hot";

// Functions that superblocks changed have this attribute until they are cleaned up.
constexpr char PleachUnfoldedAttribute[] = "pleach-unfolded";

// A counter's increment by `Step`: of the unit that `Slot` belongs to, at `Index` of its array, or where `Hashed` is not 0, of
// this number in the table of the unit's hash-counted function `Hashed - 1`, whose two words are at `Word`.
void pleachEmitCount(llvm::IRBuilderBase &B, llvm::Value *Slot, llvm::Value *Index, uint32_t Hashed,
                     uint32_t Word, llvm::Value *Step);

// Keeps the counters of a function's innermost loops in registers; returns whether anything changed.
bool pleachPromoteCounts(llvm::Function &F);

// Repeats, in the blocks that use it, what blocks that are to be copied compute and code generation folds into its uses.
void pleachLocalize(llvm::Function &F, const llvm::SmallPtrSetImpl<llvm::BasicBlock *> &Copied);

// Adds passes that inline callees as small as their calls, and what simplifies the callers.
void pleachInlineSmallCallees(llvm::ModulePassManager &MPM, llvm::ThinOrFullLTOPhase Phase);

// Adds the pass from which on the inliner knows the profile.
void pleachTellInliner(llvm::ModulePassManager &MPM);

// Sets an option of the host, unless the user did or the host has none of that name.
void pleachSetUnlessGiven(llvm::StringRef Name, llvm::StringRef Value);

#endif
