// Duplicates blocks, with SSA repair, and cleans up afterwards.
// The Rust half chooses the copies. Any graph whose nodes map to blocks slot by slot computes the same.
#include "pleach.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Scalar/ADCE.h"
#include "llvm/Transforms/Scalar/CorrelatedValuePropagation.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/InstSimplifyPass.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/SSAUpdater.h"
#include "llvm/Transforms/Utils/ValueMapper.h"

using namespace llvm;

namespace {

// Whether a block only returns.
bool onlyReturns(const BasicBlock *BB) {
  return BB && isa<ReturnInst>(*BB->getFirstNonPHIOrDbgOrLifetime());
}

} // namespace

// Simplifies a function with copied blocks: propagates known values, removes redundant loads, folds decided branches.
// Runs no pass that would merge copies again.
bool pleachCleanUpDuplicates(Function &F, FunctionAnalysisManager &FAM) {
  if (!F.hasFnAttribute(PleachDuplicatedAttribute))
    return false;
  F.removeFnAttr(PleachDuplicatedAttribute);
  FunctionPassManager FPM;
  FPM.addPass(EarlyCSEPass(/*UseMemorySSA=*/true));
  FPM.addPass(CorrelatedValuePropagationPass());
  FPM.addPass(InstSimplifyPass());
  FPM.addPass(ADCEPass());
  FPM.run(F, FAM);
  // Not SimplifyCFG: it would remove empty blocks on edges to φs of rarely executed blocks. The moves for these φs
  // would then be executed before the branch, on all paths.
  for (BasicBlock &BB : F)
    ConstantFoldTerminator(&BB, /*DeleteDeadConditions=*/true);
  removeUnreachableBlocks(F);
  for (BasicBlock &BB : llvm::make_early_inc_range(F))
    MergeBlockIntoPredecessor(&BB);
  return true;
}

extern "C" {

// Gives a function the graph of `Nodes`. The first nodes must be its blocks in order; otherwise returns false and
// changes nothing. Copies are appended in the order of nodes. Unreachable blocks remain, so that the numbers of blocks
// are stable.
bool pleach_duplicate_blocks(LLVMValueRef V, const PleachNode *Nodes, size_t Count) {
  Function &F = *unwrap<Function>(V);
  SmallVector<BasicBlock *> Blocks;
  for (BasicBlock &BB : F)
    Blocks.push_back(&BB);
  const size_t Original = Blocks.size();
  if (Count < Original)
    return false;
  for (size_t N = 0; N < Count; ++N) {
    if (Nodes[N].Origin >= Original || (N < Original && Nodes[N].Origin != N))
      return false;
    Instruction *T = Blocks[Nodes[N].Origin]->getTerminator();
    if (T->getNumSuccessors() != Nodes[N].Count)
      return false;
    for (size_t S = 0; S < Nodes[N].Count; ++S) {
      uint32_t To = Nodes[N].Successors[S];
      if (To >= Count || Blocks[Nodes[To].Origin] != T->getSuccessor(S))
        return false;
    }
  }

  SmallPtrSet<BasicBlock *, 16> Copied;
  for (size_t N = Original; N < Count; ++N)
    Copied.insert(Blocks[Nodes[N].Origin]);
  pleachRematerialiseAddresses(F, Copied);

  // The incoming values of φs, before any edge changes.
  DenseMap<PHINode *, DenseMap<BasicBlock *, Value *>> Incoming;
  for (BasicBlock *BB : Blocks)
    for (PHINode &Phi : BB->phis())
      for (unsigned I = 0, E = Phi.getNumIncomingValues(); I != E; ++I)
        Incoming[&Phi][Phi.getIncomingBlock(I)] = Phi.getIncomingValue(I);

  // Copies, whose operands refer to values of the copy.
  SmallVector<std::unique_ptr<ValueToValueMapTy>> Maps(Count);
  SmallVector<SmallVector<size_t, 2>> CopiesOf(Original);
  for (size_t N = Original; N < Count; ++N) {
    BasicBlock *Origin = Blocks[Nodes[N].Origin];
    Maps[N] = std::make_unique<ValueToValueMapTy>();
    BasicBlock *Copy = CloneBasicBlock(Origin, *Maps[N], ".sb", &F);
    SmallVector<MDNode *> Scopes;
    identifyNoAliasScopesToClone({Copy}, Scopes);
    cloneAndAdaptNoAliasScopes(Scopes, {Copy}, F.getContext(), "sb");
    for (Instruction &I : *Copy) {
      RemapDbgRecordRange(F.getParent(), I.getDbgRecordRange(), *Maps[N],
                          RF_NoModuleLevelChanges | RF_IgnoreMissingLocals);
      if (!isa<PHINode>(I))
        RemapInstruction(&I, *Maps[N], RF_NoModuleLevelChanges | RF_IgnoreMissingLocals);
    }
    Blocks.push_back(Copy);
    CopiesOf[Nodes[N].Origin].push_back(N);
  }

  SmallVector<SmallVector<size_t, 4>> Predecessors(Count);
  for (size_t N = 0; N < Count; ++N) {
    Instruction *T = Blocks[N]->getTerminator();
    for (size_t S = 0; S < Nodes[N].Count; ++S) {
      T->setSuccessor(S, Blocks[Nodes[N].Successors[S]]);
      Predecessors[Nodes[N].Successors[S]].push_back(N);
    }
  }
  for (size_t N = 0; N < Count; ++N) {
    auto Own = Blocks[N]->phis().begin();
    for (PHINode &Phi : Blocks[Nodes[N].Origin]->phis()) {
      PHINode &Copy = *Own++;
      while (Copy.getNumIncomingValues())
        Copy.removeIncomingValue(Copy.getNumIncomingValues() - 1, /*DeletePHIIfEmpty=*/false);
      for (size_t P : Predecessors[N]) {
        BasicBlock *From = Blocks[Nodes[P].Origin];
        Value *Taken = Incoming[&Phi][From];
        auto *I = dyn_cast<Instruction>(Taken);
        if (P >= Original && I && I->getParent() == From)
          Taken = (*Maps[P])[I];
        Copy.addIncoming(Taken, Blocks[P]);
      }
    }
  }

  // SSA repair of values that now have several definitions.
  for (size_t B = 0; B < Original; ++B) {
    if (CopiesOf[B].empty())
      continue;
    for (Instruction &I : *Blocks[B]) {
      SmallVector<Use *> Elsewhere;
      for (Use &U : I.uses()) {
        auto *User = cast<Instruction>(U.getUser());
        auto *Phi = dyn_cast<PHINode>(User);
        if ((Phi ? Phi->getIncomingBlock(U) : User->getParent()) != Blocks[B])
          Elsewhere.push_back(&U);
      }
      SmallVector<DbgVariableRecord *> Described;
      findDbgValues(&I, Described);
      llvm::erase_if(Described, [&](DbgVariableRecord *R) { return R->getParent() == Blocks[B]; });
      if (Elsewhere.empty() && Described.empty())
        continue;
      SSAUpdater Updater;
      Updater.Initialize(I.getType(), I.getName());
      Updater.AddAvailableValue(Blocks[B], &I);
      for (size_t N : CopiesOf[B])
        Updater.AddAvailableValue(Blocks[N], (*Maps[N])[&I]);
      for (Use *U : Elsewhere)
        Updater.RewriteUse(*U);
      if (!Described.empty())
        Updater.UpdateDebugValues(&I, Described);
    }
  }
  return true;
}

// Removes unreachable blocks and dead φs, and requests the clean-up pass.
void pleach_remove_dead_blocks(LLVMValueRef V) {
  Function &F = *unwrap<Function>(V);
  removeUnreachableBlocks(F);
  for (BasicBlock &BB : F)
    for (PHINode &Phi : llvm::make_early_inc_range(BB.phis()))
      if (Phi.use_empty() || Phi.hasConstantValue() == &Phi)
        RecursivelyDeleteDeadPHINode(&Phi);
  F.addFnAttr(PleachDuplicatedAttribute);
}

// Prevents code generation from merging equal block tails, which would undo copies: inserts a distinct assembly comment
// before each terminator. Object code does not contain it.
void pleach_prevent_tail_merge(const LLVMBasicBlockRef *Blocks, size_t Count) {
  for (size_t I = 0; I < Count; ++I) {
    Instruction *T = unwrap(Blocks[I])->getTerminator();
    // An instruction between a call and a return, here or in the next block, would prevent a tail call. Indirect
    // branches must remain for code generation to copy.
    auto *Before = dyn_cast_if_present<CallInst>(T->getPrevNode());
    bool Returns = isa<ReturnInst>(T) || onlyReturns(T->getParent()->getSingleSuccessor());
    bool EndsInCall = (Before && Before->isTailCall() && Returns) || unwrap(Blocks[I])->getTerminatingMustTailCall() ||
                      unwrap(Blocks[I])->getTerminatingDeoptimizeCall();
    if (isa<CallBase>(T) || isa<IndirectBrInst>(T) || T->isEHPad() || EndsInCall || onlyReturns(T->getParent()))
      continue;
    auto *Type = FunctionType::get(llvm::Type::getVoidTy(T->getContext()), false);
    auto *Marker = InlineAsm::get(Type, ("/* " + Twine(I) + " */").str(), "", /*hasSideEffects=*/true);
    IRBuilder<>(T).CreateCall(Type, Marker)->setDoesNotThrow();
  }
}

} // extern "C"
