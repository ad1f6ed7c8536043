// Chains of dependent instructions, and how long they take.
#pragma once
#include "pleach.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Instructions.h"

namespace pleach {

// Cycles from an instruction's operands to its result.
double latency(const llvm::Instruction &I, const PleachLatencies &Of);

// Whether an instruction is a select that could be a branch. Those that the programmer marked unpredictable remain selects.
bool couldBeBranch(const llvm::Instruction &I);

// The φs of a loop's header that depend on a value within an iteration. Returns whether all were looked for: where too
// much depends on the value, others may.
bool dependentHeaderPhis(const llvm::Instruction &From, const llvm::Loop &L,
                         llvm::SmallPtrSetImpl<const llvm::Value *> &Found);

// The longest chains from any of some values, within one iteration of a loop, or one execution of the function.
class ChainsFrom {
  const llvm::Loop *L; // may be null
  const PleachLatencies &Latencies;
  const llvm::SmallPtrSetImpl<const llvm::Value *> &Sources;
  llvm::ArrayRef<llvm::SelectInst *> Predicted;
  llvm::DenseMap<const llvm::Instruction *, double> Longest;
  bool Complete = true;

public:
  // `Predicted`: selects that do not wait for their condition.
  ChainsFrom(const llvm::SmallPtrSetImpl<const llvm::Value *> &Sources, const llvm::Loop *L,
             const PleachLatencies &Latencies, llvm::ArrayRef<llvm::SelectInst *> Predicted = {})
      : L(L), Latencies(Latencies), Sources(Sources), Predicted(Predicted) {}

  // Cycles until a value is available after the last source before it; -1 if it does not depend on the sources. A source
  // that is a load takes the time of a load: it waits for a store.
  double to(const llvm::Value *V, unsigned Depth = 0);

  // Whether all chains were followed to their beginning. What was not may depend on the sources.
  bool areComplete() const { return Complete; }
};

} // namespace pleach
