// Duplication simulation: finds the instructions of a trace that fold once it has a single entry. Changes nothing.
// After Leopoldseder et al., "Dominance-based duplication simulation" (CGO 2018).
#include "pleach.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Analysis/InstructionSimplify.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;

namespace {

class Simulation {
  const DataLayout &DL;
  // Known values on this trace.
  DenseMap<Value *, Value *> Known;
  // Known contents of memory.
  DenseMap<std::pair<Value *, Type *>, Value *> Memory;
  // Conditions decided so far, most recent last.
  SmallVector<std::pair<Value *, bool>> Decided;

  Value *mapped(Value *V) const {
    auto It = Known.find(V);
    return It == Known.end() ? V : It->second;
  }

  void access(Instruction &I) {
    if (auto *Load = dyn_cast<LoadInst>(&I); Load && Load->isSimple())
      Memory.try_emplace({mapped(Load->getPointerOperand()), Load->getType()}, Load);
    else if (I.mayWriteToMemory()) {
      Memory.clear();
      if (auto *Store = dyn_cast<StoreInst>(&I); Store && Store->isSimple())
        Memory[{mapped(Store->getPointerOperand()), Store->getValueOperand()->getType()}] =
            mapped(Store->getValueOperand());
    }
  }

  // The value of an instruction, if it folds.
  Value *folded(Instruction &I) {
    if (auto *Load = dyn_cast<LoadInst>(&I); Load && Load->isSimple()) {
      auto It = Memory.find({mapped(Load->getPointerOperand()), Load->getType()});
      return It == Memory.end() ? nullptr : It->second;
    }
    if (isa<CallBase>(I) || I.mayReadOrWriteMemory() || I.isTerminator() || I.getType()->isVoidTy())
      return nullptr;
    SmallVector<Value *> Operands;
    bool Changed = false;
    for (Value *Op : I.operands()) {
      Operands.push_back(mapped(Op));
      Changed |= Operands.back() != Op;
    }
    if (Changed)
      if (Value *V = simplifyInstructionWithOperands(&I, Operands, SimplifyQuery(DL, &I)); V && V != &I)
        return V;
    if (isa<ICmpInst>(I))
      for (auto [Condition, Taken] : llvm::reverse(Decided))
        if (auto Implied = isImpliedCondition(Condition, &I, DL, Taken))
          return ConstantInt::getBool(I.getContext(), *Implied);
    return nullptr;
  }

public:
  explicit Simulation(const DataLayout &DL) : DL(DL) {}

  // Simulates a block that is not copied.
  void pass(BasicBlock &BB) {
    for (Instruction &I : BB)
      access(I);
  }

  // Follows an edge.
  void step(BasicBlock &From, BasicBlock &To) {
    SmallVector<std::pair<Value *, Value *>> Phis;
    for (PHINode &Phi : To.phis())
      Phis.push_back({&Phi, mapped(Phi.getIncomingValueForBlock(&From))});
    for (auto [Phi, V] : Phis)
      Known[Phi] = V;
    auto *Branch = dyn_cast<BranchInst>(From.getTerminator());
    if (Branch && Branch->isConditional() && Branch->getSuccessor(0) != Branch->getSuccessor(1)) {
      bool Taken = Branch->getSuccessor(0) == &To;
      Value *Condition = Branch->getCondition();
      Decided.push_back({Condition, Taken});
      Known[Condition] = ConstantInt::getBool(To.getContext(), Taken);
      using namespace PatternMatch;
      CmpPredicate P;
      Value *V;
      Constant *C;
      if (match(Condition, m_ICmp(P, m_Value(V), m_Constant(C))) &&
          P == (Taken ? ICmpInst::ICMP_EQ : ICmpInst::ICMP_NE))
        Known[V] = C;
    } else if (auto *Switch = dyn_cast<SwitchInst>(From.getTerminator())) {
      if (ConstantInt *Case = Switch->findCaseDest(&To))
        Known[Switch->getCondition()] = Case;
    }
  }

  // Simulates a copied block; returns how many of its instructions fold.
  uint32_t copy(BasicBlock &BB) {
    uint32_t Saved = 0;
    for (Instruction &I : BB) {
      if (isa<PHINode>(I) || I.isDebugOrPseudoInst())
        continue;
      if (Value *V = folded(I)) {
        Known[&I] = V;
        ++Saved;
        continue;
      }
      access(I);
      Value *Decides = nullptr;
      if (auto *Branch = dyn_cast<BranchInst>(&I); Branch && Branch->isConditional())
        Decides = Branch->getCondition();
      else if (auto *Switch = dyn_cast<SwitchInst>(&I))
        Decides = Switch->getCondition();
      if (Decides && isa<Constant>(mapped(Decides)))
        ++Saved;
    }
    return Saved;
  }
};

} // namespace

// For each block of a trace except the first, which is not copied: writes how many of its instructions fold in a copy.
extern "C" void pleach_simulate_duplication(const LLVMBasicBlockRef *Trace, size_t Count, uint32_t *Saved) {
  Simulation S(unwrap(Trace[0])->getModule()->getDataLayout());
  S.pass(*unwrap(Trace[0]));
  for (size_t I = 1; I < Count; ++I) {
    S.step(*unwrap(Trace[I - 1]), *unwrap(Trace[I]));
    *Saved++ = S.copy(*unwrap(Trace[I]));
  }
}
