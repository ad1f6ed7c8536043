// Copies of blocks: what may be copied, what folds then, and the copying itself with SSA repair.
// Which copies to make is decided in Rust; any graph whose nodes map to blocks slot by slot computes the same.
#include "pleach.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Analysis/BlockFrequencyInfo.h"
#include "llvm/Analysis/BranchProbabilityInfo.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/SSAUpdater.h"
#include "llvm/Transforms/Utils/ValueMapper.h"

using namespace llvm;

// The order is that of `Node` in src/ffi.rs: a block of the function, or a copy of one, and where its slots lead to.
struct PleachNode {
  uint32_t Origin;
  const uint32_t *Successors;
  size_t Count;
};

namespace {

bool mayCopy(const Instruction &I) {
  if (I.getType()->isTokenTy() || I.isEHPad() || isa<AllocaInst>(I))
    return false;
  if (isa<CallBrInst>(I) || isa<CleanupReturnInst>(I) || isa<CatchReturnInst>(I))
    return false;
  // Code generation copies indirect branches itself. Here each copy would need φs in all that it may lead to, and as its edges cannot be
  // split, the moves that those become would all be made before every branch.
  if (isa<IndirectBrInst>(I))
    return false;
  auto *Call = dyn_cast<CallBase>(&I);
  if (!Call)
    return true;
  // Assembly may define labels, which must stay unique. Calls that return twice come back into one copy only.
  return !Call->cannotDuplicate() && !Call->isConvergent() && !Call->isInlineAsm() &&
         !Call->hasFnAttr(Attribute::ReturnsTwice);
}

// A local function with this one call is inlined for sure; with two it may not be.
bool isOnlyCallOfLocal(const Instruction &I) {
  auto *Call = dyn_cast<CallBase>(&I);
  auto *F = Call ? Call->getCalledFunction() : nullptr;
  return F && F->hasLocalLinkage() && !F->isDeclaration() && F->hasOneUse();
}

// Whether a block advances a variable of its loop: copies would hide from code generation that the loop has one.
bool advances(const BasicBlock &BB, const Loop &L) {
  const BasicBlock *Latch = L.getLoopLatch();
  if (!Latch)
    return false;
  for (const PHINode &Phi : L.getHeader()->phis()) {
    auto *Next = dyn_cast<Instruction>(Phi.getIncomingValueForBlock(Latch));
    if (Next && Next->getParent() == &BB && (isa<BinaryOperator>(Next) || isa<GetElementPtrInst>(Next)) &&
        llvm::is_contained(Next->operands(), &Phi))
      return true;
  }
  return false;
}

// Whether a loop does one of many things in each turn, as interpreters and state machines do.
bool dispatches(const Loop &L) {
  return llvm::any_of(L.blocks(), [](BasicBlock *BB) {
    return isa<SwitchInst>(BB->getTerminator()) || isa<IndirectBrInst>(BB->getTerminator());
  });
}

// Whether a block does nothing but return.
bool onlyReturns(const BasicBlock *BB) {
  return BB && isa<ReturnInst>(*BB->getFirstNonPHIOrDbgOrLifetime());
}

bool hasCalls(const Loop &L) {
  for (BasicBlock *BB : L.blocks())
    for (Instruction &I : *BB)
      if (isa<CallBase>(I) && !isa<IntrinsicInst>(I))
        return true;
  return false;
}

} // namespace

extern "C" {

// Whether superblocks may be formed in a function at all. `Small`: also where code is to be small.
bool pleach_may_unfold(LLVMValueRef V, bool Small) {
  Function &F = *unwrap<Function>(V);
  return !F.hasOptNone() && (Small || !F.hasOptSize()) && !F.hasFnAttribute(Attribute::Naked) &&
         !F.isPresplitCoroutine() && !F.callsFunctionThatReturnsTwice();
}

// Executions of each block and probabilities of each successor slot, as the weights
// say. Unknown where there is no entry count: false.
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

// Which blocks may be copied. `Early`: before inlining and vectorisation, which copies must not prevent.
void pleach_clonable(LLVMValueRef V, bool Early, uint8_t *Clonable) {
  Function &F = *unwrap<Function>(V);
  DominatorTree DT(F);
  LoopInfo LI(DT);
  for (BasicBlock &BB : F) {
    bool May = !BB.isEntryBlock() && !BB.hasAddressTaken() && !BB.isEHPad();
    if (Loop *L = LI.getLoopFor(&BB); L && L->isInnermost())
      May &= Early ? hasCalls(*L) : dispatches(*L) || !advances(BB, *L);
    for (Instruction &I : BB)
      May = May && mayCopy(I) && !(Early && isOnlyCallOfLocal(I));
    *Clonable++ = May;
  }
}

// Which blocks are in innermost loops that do the same in each turn: their values fit registers and their variables advance in step, which
// copies may spoil. And which are headers of loops that do one of many things in each turn.
void pleach_loops(LLVMValueRef V, uint8_t *Tight, uint8_t *Dispatching) {
  Function &F = *unwrap<Function>(V);
  DominatorTree DT(F);
  LoopInfo LI(DT);
  for (BasicBlock &BB : F) {
    Loop *L = LI.getLoopFor(&BB);
    const bool Dispatches = L && dispatches(*L);
    *Tight++ = L && L->isInnermost() && !Dispatches;
    *Dispatching++ = Dispatches && L->getHeader() == &BB;
  }
}

// Makes a function's graph the given one. The first nodes are its blocks in order. False, and nothing done, where they are not.
// Blocks of copies are appended in the order of nodes; blocks that nothing leads to any more stay, for the caller to number.
bool pleach_unfold(LLVMValueRef V, const PleachNode *Nodes, size_t Count) {
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
  pleachLocalize(F, Copied);

  // What φs take from each predecessor, before any edge changes.
  DenseMap<PHINode *, DenseMap<BasicBlock *, Value *>> Incoming;
  for (BasicBlock *BB : Blocks)
    for (PHINode &Phi : BB->phis())
      for (unsigned I = 0, E = Phi.getNumIncomingValues(); I != E; ++I)
        Incoming[&Phi][Phi.getIncomingBlock(I)] = Phi.getIncomingValue(I);

  // Copies, within which operands refer to the copy.
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

  // Values that now have several definitions.
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

// Removes what nothing leads to, and φs that are not needed. Leaves the rest to the clean-up pass.
void pleach_tidy(LLVMValueRef V) {
  Function &F = *unwrap<Function>(V);
  removeUnreachableBlocks(F);
  for (BasicBlock &BB : F)
    for (PHINode &Phi : llvm::make_early_inc_range(BB.phis()))
      if (Phi.use_empty() || Phi.hasConstantValue() == &Phi)
        RecursivelyDeleteDeadPHINode(&Phi);
  F.addFnAttr(PleachUnfoldedAttribute);
}

// Keeps the ends of blocks from being merged with equal ones in code generation, which would undo copies: tells them apart by an empty piece
// of assembly before each terminator. Nothing of it gets into object code.
void pleach_keep_apart(const LLVMBasicBlockRef *Blocks, size_t Count) {
  for (size_t I = 0; I < Count; ++I) {
    Instruction *T = unwrap(Blocks[I])->getTerminator();
    // Nothing may come between a call and the return that make a tail call, whether the return is here or in the next block. Indirect
    // branches are for code generation to copy.
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

// What LLVM finds wrong with a function; empty text where nothing is. For checks only.
bool pleach_is_broken(LLVMValueRef V) { return verifyFunction(*unwrap<Function>(V), &errs()); }

} // extern "C"
