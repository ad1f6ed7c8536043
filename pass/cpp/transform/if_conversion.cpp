// If-conversion of branches whose arms are short and access memory: both arms are executed, and selects choose the
// results. If an access of the arm that is not taken might fault, a select also chooses its address: loads read zeros,
// and stores write to a dummy stack slot. The Rust half chooses the branches.
#include "analysis/chains.h"
#include "pleach.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/ProfDataUtils.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include <optional>

using namespace llvm;

namespace {

// Bytes of the widest value that may be loaded or stored, and the largest alignment.
constexpr uint64_t MaxWidth = 16;

// Maximum depth of nested branches that are converted together.
constexpr unsigned MaxDepth = 4;

// A branch whose arms rejoin.
struct Arms {
  BranchInst *Branch = nullptr;
  // The arms; an empty one is null.
  BasicBlock *Blocks[2] = {nullptr, nullptr};
  // The branch that ends an arm, whose own arms rejoin at the same block.
  BranchInst *Inner[2] = {nullptr, nullptr};
  BasicBlock *Join = nullptr;
  SmallVector<Instruction *, 8> Accesses[2];
  // Both arms make the same kinds of accesses in the same order: one access serves both.
  bool Paired = false;
};

// Whether code generation can select between values of a type.
bool maySelect(const Type *T) {
  return T->isIntOrIntVectorTy() || T->isFPOrFPVectorTy() || T->isPtrOrPtrVectorTy();
}

// Whether code generation would turn a select of this type into a branch: x86 processors have no conditional moves of
// vectors, nor, below AVX-512, of floating-point values. (LLVM itself forms the selects that it implements by masks.)
bool needsBranch(const Type *T, const Function &F) {
  if (!F.getParent()->getTargetTriple().isX86())
    return false;
  return T->isVectorTy() || (T->isFloatingPointTy() &&
                             !F.getFnAttribute("target-features").getValueAsString().contains("+avx512f"));
}

bool isAccess(const Instruction &I) { return isa<LoadInst>(I) || isa<StoreInst>(I); }

bool mayAccess(const Instruction &I, const DataLayout &Layout) {
  auto *Load = dyn_cast<LoadInst>(&I);
  auto *Store = dyn_cast<StoreInst>(&I);
  if (!(Load ? Load->isSimple() : Store->isSimple()) || getLoadStoreAddressSpace(&I) != 0)
    return false;
  // A swifterror value is a register, not memory.
  if (getLoadStorePointerOperand(&I)->isSwiftError())
    return false;
  Type *T = getLoadStoreType(&I);
  return maySelect(T) && !Layout.getTypeStoreSize(T).isScalable() &&
         Layout.getTypeStoreSize(T).getFixedValue() <= MaxWidth &&
         getLoadStoreAlignment(&I).value() <= MaxWidth;
}

// Whether a call is an intrinsic of one or two instructions.
bool isShort(const CallBase &Call) {
  switch (Call.getIntrinsicID()) {
  case Intrinsic::abs:
  case Intrinsic::smax:
  case Intrinsic::smin:
  case Intrinsic::umax:
  case Intrinsic::umin:
  case Intrinsic::bswap:
  case Intrinsic::fshl:
  case Intrinsic::fshr:
  case Intrinsic::uadd_sat:
  case Intrinsic::usub_sat:
  case Intrinsic::uadd_with_overflow:
  case Intrinsic::usub_with_overflow:
  case Intrinsic::sadd_with_overflow:
  case Intrinsic::ssub_with_overflow:
  case Intrinsic::fabs:
  case Intrinsic::fmuladd:
  case Intrinsic::copysign:
    return true;
  default:
    return false;
  }
}

// Whether an instruction may be executed speculatively once accesses are guarded.
bool mayHoist(const Instruction &I, const DataLayout &Layout) {
  if (isAccess(I))
    return mayAccess(I, Layout);
  if (isa<PseudoProbeInst>(I))
    return true;
  if (I.getType()->isTokenTy() || isa<PHINode>(I) || isa<AllocaInst>(I) || I.mayReadOrWriteMemory())
    return false;
  // These take as long as a misprediction.
  if (I.isIntDivRem() || I.getOpcode() == Instruction::FDiv || I.getOpcode() == Instruction::FRem)
    return false;
  auto *Call = dyn_cast<CallBase>(&I);
  return (!Call || isShort(*Call)) && isSafeToSpeculativelyExecute(&I);
}

std::optional<Arms> armsOf(Instruction *I, unsigned Depth);

// The block at which an arm rejoins, and the inner branch that ends the arm, if any.
std::pair<BasicBlock *, BranchInst *> end(BasicBlock *Arm, BasicBlock *From, unsigned Depth) {
  auto *Last = dyn_cast<BranchInst>(Arm->getTerminator());
  if (Arm->getSinglePredecessor() != From || !Last || Arm->hasAddressTaken())
    return {};
  const DataLayout &Layout = Arm->getDataLayout();
  for (const Instruction &I : *Arm)
    if (&I != Last && !mayHoist(I, Layout))
      return {};
  if (Last->isUnconditional())
    return {Last->getSuccessor(0), nullptr};
  std::optional<Arms> Within = Depth > 0 ? armsOf(Last, Depth - 1) : std::nullopt;
  if (!Within)
    return {};
  return {Within->Join, Last};
}

bool sameAccesses(ArrayRef<Instruction *> A, ArrayRef<Instruction *> B) {
  return !A.empty() && A.size() == B.size() && llvm::all_of(llvm::zip(A, B), [](auto Pair) {
    auto [X, Y] = Pair;
    const Type *T = getLoadStoreType(X);
    return X->getOpcode() == Y->getOpcode() && T == getLoadStoreType(Y) &&
           !(isa<StoreInst>(X) && needsBranch(T, *X->getFunction()));
  });
}

std::optional<Arms> armsOf(Instruction *I, unsigned Depth) {
  Arms A;
  A.Branch = dyn_cast<BranchInst>(I);
  if (!A.Branch || !A.Branch->isConditional())
    return std::nullopt;
  BasicBlock *From = A.Branch->getParent();
  BasicBlock *First = A.Branch->getSuccessor(0), *Second = A.Branch->getSuccessor(1);
  if (First == Second)
    return std::nullopt;
  auto [AfterFirst, InFirst] = end(First, From, Depth);
  auto [AfterSecond, InSecond] = end(Second, From, Depth);
  bool Both = AfterFirst && AfterFirst == AfterSecond;
  if (AfterFirst == Second || Both)
    A.Blocks[0] = First, A.Inner[0] = InFirst, A.Join = AfterFirst;
  if (AfterSecond == First || (Both && AfterFirst != Second))
    A.Blocks[1] = Second, A.Inner[1] = InSecond, A.Join = AfterSecond;
  if (!A.Join || A.Join == From || A.Join == A.Blocks[0] || A.Join == A.Blocks[1] || A.Join->isEHPad())
    return std::nullopt;
  for (PHINode &Phi : A.Join->phis())
    if (!maySelect(Phi.getType()) || needsBranch(Phi.getType(), *From->getParent()))
      return std::nullopt;
  for (int Arm : {0, 1})
    if (A.Blocks[Arm])
      for (Instruction &I : *A.Blocks[Arm])
        if (isAccess(I))
          A.Accesses[Arm].push_back(&I);
  A.Paired = !A.Inner[0] && !A.Inner[1] && sameAccesses(A.Accesses[0], A.Accesses[1]);
  return A;
}

double sizeOf(const BasicBlock *Arm) {
  double Size = 0;
  if (Arm)
    for (const Instruction &I : *Arm)
      Size += !I.isTerminator() && !isa<PseudoProbeInst>(I) && !isa<CastInst>(I);
  return Size;
}

bool isSafe(Instruction *Access, Instruction *At) {
  return isa<LoadInst>(Access) && isSafeToSpeculativelyExecute(Access, At);
}

class Converter {
  Arms &A;
  IRBuilder<> B;

public:
  explicit Converter(Arms &A) : A(A), B(A.Branch) {}

  Value *select(Value *Then, Value *Else) {
    if (Then == Else)
      return Then;
    Value *V = B.CreateSelect(A.Branch->getCondition(), Then, Else);
    if (auto *I = dyn_cast<Instruction>(V))
      I->copyMetadata(*A.Branch, {LLVMContext::MD_prof, LLVMContext::MD_unpredictable});
    return V;
  }

private:
  // The constant that guarded loads read.
  Value *zeros() {
    Module *M = A.Branch->getModule();
    constexpr char Name[] = "pleach.zeros";
    if (auto *G = M->getNamedGlobal(Name))
      return G;
    auto *T = ArrayType::get(B.getInt8Ty(), MaxWidth);
    auto *G = new GlobalVariable(*M, T, /*isConstant=*/true, GlobalValue::PrivateLinkage,
                                 ConstantAggregateZero::get(T), Name);
    G->setAlignment(Align(MaxWidth));
    G->setUnnamedAddr(GlobalValue::UnnamedAddr::Global);
    return G;
  }

  // The dummy slot that guarded stores write to, one for each function.
  Value *sink() {
    constexpr char Name[] = "pleach.sink"; // of metadata: values lose their names
    BasicBlock &Entry = A.Branch->getFunction()->getEntryBlock();
    // If it exists, it is the first instruction.
    if (Entry.front().hasMetadata(Name))
      return &Entry.front();
    // Not an array: stack protectors treat those as buffers.
    auto *Sink = new AllocaInst(B.getIntNTy(8 * MaxWidth), 0, nullptr, Align(MaxWidth), Name, Entry.begin());
    Sink->setMetadata(Name, MDNode::get(Sink->getContext(), {}));
    return Sink;
  }

  void hoist(Instruction *I) {
    I->dropDbgRecords();
    I->moveBefore(A.Branch->getIterator());
    // Attributes and metadata about its value hold only if the arm is taken.
    I->dropUBImplyingAttrsAndUnknownMetadata(
        {LLVMContext::MD_tbaa, LLVMContext::MD_prof, LLVMContext::MD_unpredictable, LLVMContext::MD_fpmath});
    I->setMetadata(LLVMContext::MD_DIAssignID, nullptr);
    I->setDebugLoc(DebugLoc::getDropped());
  }

  void hoistGuarded(Instruction *I, bool IsThen) {
    if (isAccess(*I) && !isSafe(I, A.Branch)) {
      Value *Other = isa<LoadInst>(I) ? zeros() : sink();
      Value *Address = getLoadStorePointerOperand(I);
      unsigned Operand = isa<LoadInst>(I) ? LoadInst::getPointerOperandIndex() : StoreInst::getPointerOperandIndex();
      I->setOperand(Operand, IsThen ? select(Address, Other) : select(Other, Address));
    }
    hoist(I);
  }

public:
  // Hoists an arm's instructions up to an access, or all if it is null.
  void hoistUntil(BasicBlock *Arm, Instruction *Access, bool IsThen) {
    while (!Arm->front().isTerminator() && &Arm->front() != Access) {
      if (isa<PseudoProbeInst>(Arm->front()))
        Arm->front().eraseFromParent();
      else
        hoistGuarded(&Arm->front(), IsThen);
    }
  }

private:
  // Replaces an access of each arm by a single one at a selected address.
  void hoistBoth(Instruction *Then, Instruction *Else) {
    Value *Address = select(getLoadStorePointerOperand(Then), getLoadStorePointerOperand(Else));
    Align Alignment = std::min(getLoadStoreAlignment(Then), getLoadStoreAlignment(Else));
    if (auto *Load = dyn_cast<LoadInst>(Then)) {
      Load->setOperand(LoadInst::getPointerOperandIndex(), Address);
      Load->setAlignment(Alignment);
      Else->replaceAllUsesWith(Load);
    } else {
      auto *Store = cast<StoreInst>(Then);
      Store->setOperand(0, select(Store->getValueOperand(), cast<StoreInst>(Else)->getValueOperand()));
      Store->setOperand(StoreInst::getPointerOperandIndex(), Address);
      Store->setAlignment(Alignment);
    }
    Then->setAAMetadata(Then->getAAMetadata().merge(Else->getAAMetadata()));
    Else->eraseFromParent();
    hoist(Then);
  }

public:
  void run() {
    if (A.Paired)
      for (auto [Then, Else] : llvm::zip(A.Accesses[0], A.Accesses[1])) {
        hoistUntil(A.Blocks[0], Then, true);
        hoistUntil(A.Blocks[1], Else, false);
        hoistBoth(Then, Else);
      }
    for (int Arm : {0, 1})
      if (A.Blocks[Arm])
        hoistUntil(A.Blocks[Arm], nullptr, Arm == 0);
    BasicBlock *From = A.Branch->getParent();
    BasicBlock *Then = A.Blocks[0] ? A.Blocks[0] : From, *Else = A.Blocks[1] ? A.Blocks[1] : From;
    for (PHINode &Phi : A.Join->phis()) {
      Value *V = select(Phi.getIncomingValueForBlock(Then), Phi.getIncomingValueForBlock(Else));
      for (BasicBlock *Arm : {Then, Else})
        Phi.removeIncomingValue(Arm, /*DeletePHIIfEmpty=*/false);
      Phi.addIncoming(V, From);
    }
    B.CreateBr(A.Join)->setDebugLoc(A.Branch->getDebugLoc());
    A.Branch->eraseFromParent();
    for (BasicBlock *Arm : A.Blocks)
      if (Arm)
        Arm->eraseFromParent();
    MergeBlockIntoPredecessor(A.Join);
  }
};

// Two tests in a row, the second of which is only made if the first one succeeds: `if (a && b)`.
struct Tests {
  BranchInst *First = nullptr;
  BranchInst *Second = nullptr;
  // The successors by which the first leads to the second, and the second to what follows if both succeed.
  unsigned Succeeds[2] = {0, 0};

  BasicBlock *failed() const { return First->getSuccessor(1 - Succeeds[0]); }
  BasicBlock *succeeded() const { return Second->getSuccessor(Succeeds[1]); }
};

std::optional<Tests> testsOf(Instruction *I) {
  auto *First = dyn_cast<BranchInst>(I);
  if (!First || !First->isConditional())
    return std::nullopt;
  BasicBlock *From = First->getParent();
  const DataLayout &Layout = From->getDataLayout();
  for (unsigned Slot : {0U, 1U}) {
    BasicBlock *Middle = First->getSuccessor(Slot), *Failed = First->getSuccessor(1 - Slot);
    auto *Second = dyn_cast<BranchInst>(Middle->getTerminator());
    if (Middle == Failed || Middle->getSinglePredecessor() != From || Middle->hasAddressTaken() || !Second ||
        !Second->isConditional() || Failed->isEHPad())
      continue;
    const bool FailsFirst = Second->getSuccessor(0) == Failed, FailsSecond = Second->getSuccessor(1) == Failed;
    const Tests Found{First, Second, {Slot, FailsFirst ? 1U : 0U}};
    if (FailsFirst == FailsSecond || Found.succeeded() == Middle || Found.succeeded() == From)
      continue;
    const bool IsTest = llvm::all_of(*Middle, [&](const Instruction &In) {
      return In.isTerminator() || (mayHoist(In, Layout) && !isa<StoreInst>(In));
    });
    const bool Selects = llvm::all_of(Failed->phis(), [&](const PHINode &Phi) {
      return Phi.getIncomingValueForBlock(From) == Phi.getIncomingValueForBlock(Middle) ||
             (maySelect(Phi.getType()) && !needsBranch(Phi.getType(), *From->getParent()));
    });
    if (IsTest && Selects)
      return Found;
  }
  return std::nullopt;
}

// The probability that a branch goes to a successor.
double probability(const BranchInst &Branch, unsigned Successor) {
  uint64_t Weights[2];
  if (!extractBranchWeights(Branch, Weights[0], Weights[1]) || Weights[0] + Weights[1] == 0)
    return 0.5;
  return static_cast<double>(Weights[Successor]) / static_cast<double>(Weights[0] + Weights[1]);
}

// Lower bound of the misprediction rate of a branch; 0 if it is unknown.
double mispredictionRate(const BranchInst &Branch) {
  const MDNode *Unpredictable = Branch.getMetadata(LLVMContext::MD_unpredictable);
  const auto *Rate = Unpredictable && Unpredictable->getNumOperands() == 1
                         ? mdconst::dyn_extract<ConstantInt>(Unpredictable->getOperand(0))
                         : nullptr;
  return Rate ? static_cast<double>(Rate->getLimitedValue(1000)) / 1000 : 0;
}

// Makes both tests always, and branches once.
void join(const Tests &T) {
  BasicBlock *From = T.First->getParent(), *Middle = T.Second->getParent();
  BasicBlock *Failed = T.failed(), *Succeeded = T.succeeded();
  const double Both = probability(*T.First, T.Succeeds[0]) * probability(*T.Second, T.Succeeds[1]);
  Arms Hoisted;
  Hoisted.Branch = T.First;
  Converter C(Hoisted);
  C.hoistUntil(Middle, nullptr, T.Succeeds[0] == 0);
  for (PHINode &Phi : Failed->phis()) {
    Value *AtFirst = Phi.getIncomingValueForBlock(From), *AtSecond = Phi.getIncomingValueForBlock(Middle);
    Value *V = T.Succeeds[0] == 0 ? C.select(AtSecond, AtFirst) : C.select(AtFirst, AtSecond);
    Phi.removeIncomingValue(Middle, /*DeletePHIIfEmpty=*/false);
    Phi.setIncomingValueForBlock(From, V);
  }
  IRBuilder<> B(T.First);
  Value *First = T.First->getCondition(), *Second = T.Second->getCondition();
  First = T.Succeeds[0] == 0 ? First : B.CreateNot(First);
  Second = T.Succeeds[1] == 0 ? Second : B.CreateNot(Second);
  // The second one was not made where the first one fails, and may be poison there.
  BranchInst *Branch = B.CreateCondBr(B.CreateAnd(First, B.CreateFreeze(Second)), Succeeded, Failed);
  constexpr double Scale = 1 << 20;
  setBranchWeights(*Branch, {static_cast<uint32_t>(Both * Scale) + 1, static_cast<uint32_t>((1 - Both) * Scale) + 1},
                   /*IsExpected=*/false);
  // Keeps code generation from making two branches again, and is not unpredictable enough for more.
  Metadata *Rate = ConstantAsMetadata::get(B.getInt32(1));
  Branch->setMetadata(LLVMContext::MD_unpredictable, MDNode::get(B.getContext(), Rate));
  Succeeded->replacePhiUsesWith(Middle, From);
  T.First->eraseFromParent();
  Middle->eraseFromParent();
}

// If-converts a branch, after the nested branches in its arms.
void convert(BranchInst *Branch, unsigned Depth) {
  std::optional<Arms> Found = armsOf(Branch, Depth);
  if (!Found)
    return;
  for (BranchInst *Inner : Found->Inner)
    if (Inner) {
      // Keeps code generation from turning its selects into branches again.
      Inner->setMetadata(LLVMContext::MD_unpredictable, MDNode::get(Inner->getContext(), {}));
      convert(Inner, Depth - 1);
    }
  if (Found->Inner[0] || Found->Inner[1])
    Found = armsOf(Branch, 0);
  if (Found)
    Converter(*Found).run();
}

// The cost of if-converting a branch and the nested branches in its arms.
PleachArms describe(Arms &A, unsigned Depth) {
  PleachArms Out = {{0, 0}, {0, 0}, 0, 0, 0.5, 0, -1, {0, 0}};
  Out.Rate = mispredictionRate(*A.Branch);
  Out.Probability = probability(*A.Branch, 0);
  for (int Arm : {0, 1}) {
    Out.Executed[Arm] = Out.Needed[Arm] = sizeOf(A.Blocks[Arm]);
    if (!A.Inner[Arm])
      continue;
    std::optional<Arms> Within = armsOf(A.Inner[Arm], Depth - 1);
    PleachArms In = describe(*Within, Depth - 1);
    Out.Executed[Arm] += In.Executed[0] + In.Executed[1] + In.Selects - In.Shared;
    // Plus 1 for the inner branch. Each access gets another guard.
    Out.Needed[Arm] += In.Probability * In.Needed[0] + (1 - In.Probability) * In.Needed[1] + 1;
    Out.Selects += static_cast<double>(Within->Accesses[0].size() + Within->Accesses[1].size());
  }
  if (A.Paired)
    for (Instruction *I : A.Accesses[0])
      Out.Shared += 1, Out.Selects += isa<StoreInst>(I) ? 2 : 1;
  else
    for (auto &Accesses : A.Accesses)
      for (Instruction *I : Accesses)
        Out.Selects += !isSafe(I, A.Branch);
  Out.Selects += static_cast<double>(range_size(A.Join->phis()));
  return Out;
}

// Cycles that a block takes to compute the values that it gives to the φs of another.
double resultsOf(const BasicBlock *From, const BasicBlock &To, const PleachLatencies &Latencies) {
  if (!From)
    return 0;
  DenseMap<const Value *, double> Known;
  for (const Instruction &I : *From) {
    double Operands = 0;
    for (const Value *Operand : I.operands())
      Operands = std::max(Operands, Known.lookup(Operand));
    Known[&I] = Operands + pleach::latency(I, Latencies);
  }
  double Longest = 0;
  for (const PHINode &Phi : To.phis())
    if (const int At = Phi.getBasicBlockIndex(From); At >= 0)
      Longest = std::max(Longest, Known.lookup(Phi.getIncomingValue(At)));
  return Longest;
}

// What unpredictable branches of a loop (or function) decide: the values and places in memory of those that can be
// if-converted, and those of the selects that have replaced others.
struct Decided {
  SmallVector<const Instruction *, 16> Values;
  SmallVector<std::pair<const Value *, int64_t>, 8> Places;

  static std::pair<const Value *, int64_t> place(const Value *Address, const DataLayout &Layout) {
    int64_t Offset = 0;
    const Value *Base = GetPointerBaseWithConstantOffset(Address, Offset, Layout);
    return {Base, Offset};
  }

  void store(const Instruction &I) {
    auto *Store = dyn_cast<StoreInst>(&I);
    if (!Store)
      return;
    // A guarded store goes to one of two addresses.
    const Value *Address = Store->getPointerOperand();
    auto *Guard = dyn_cast<SelectInst>(Address);
    for (const Value *V : {Guard ? Guard->getTrueValue() : Address, Guard ? Guard->getFalseValue() : nullptr})
      if (V)
        Places.push_back(place(V, I.getDataLayout()));
  }

  void block(BasicBlock &BB) {
    for (Instruction &I : BB) {
      if (isa<SelectInst>(I) && I.hasMetadata(LLVMContext::MD_unpredictable))
        Values.push_back(&I);
      auto *Guard = dyn_cast_if_present<SelectInst>(getLoadStorePointerOperand(&I));
      if (Guard && Guard->hasMetadata(LLVMContext::MD_unpredictable))
        store(I);
    }
    Instruction *Terminator = BB.getTerminator();
    if (!Terminator->hasMetadata(LLVMContext::MD_unpredictable))
      return;
    if (std::optional<Arms> A = armsOf(Terminator, MaxDepth)) {
      for (PHINode &Phi : A->Join->phis())
        Values.push_back(&Phi);
      for (auto &Accesses : A->Accesses)
        for (const Instruction *I : Accesses)
          store(*I);
    }
  }
};

// Cycles from what unpredictable branches decided to the condition of a branch; negative if there is no such chain, or if
// it does not reach from one iteration or call to the next: then a processor overlaps iterations. Infinite where the
// search ended before all of it was known.
double conditionChain(const Arms &A, const PleachLatencies &Latencies) {
  BasicBlock *From = A.Branch->getParent();
  DominatorTree DT(*From->getParent());
  LoopInfo Loops(DT);
  const Loop *L = Loops.getLoopFor(From);
  Decided Found;
  for (BasicBlock &BB : *From->getParent())
    if (!L || L->contains(&BB))
      Found.block(BB);

  SmallPtrSet<const Value *, 16> Sources;
  bool IsComplete = true;
  if (L)
    for (const Instruction *I : Found.Values)
      IsComplete &= pleach::dependentHeaderPhis(*I, *L, Sources);
  // Loads that read what a branch stored before.
  for (BasicBlock &BB : *From->getParent())
    if (!Found.Places.empty() && (!L || L->contains(&BB)))
      for (Instruction &I : BB)
        if (auto *Load = dyn_cast<LoadInst>(&I))
          if (llvm::is_contained(Found.Places, Decided::place(Load->getPointerOperand(), I.getDataLayout())))
            Sources.insert(Load);

  const Value *Condition = A.Branch->getCondition();
  constexpr double Unknown = std::numeric_limits<double>::infinity();
  pleach::ChainsFrom Carried(Sources, L, Latencies);
  if (Carried.to(Condition) < 0)
    return IsComplete && Carried.areComplete() ? -1 : Unknown;
  Sources.insert(Found.Values.begin(), Found.Values.end());
  pleach::ChainsFrom All(Sources, L, Latencies);
  const double Chain = All.to(Condition);
  return All.areComplete() ? Chain : Unknown;
}

// Whether the first test of the next iteration depends on what two tests decide, or may.
bool isLoopCarried(const Tests &T, const PleachLatencies &Latencies) {
  const BasicBlock *From = T.First->getParent(), *Middle = T.Second->getParent();
  DominatorTree DT(*T.First->getFunction());
  LoopInfo Loops(DT);
  const Loop *L = Loops.getLoopFor(From);
  SmallPtrSet<const Value *, 16> Sources;
  bool IsComplete = true;
  for (PHINode &Phi : T.failed()->phis())
    if (L && Phi.getIncomingValueForBlock(From) != Phi.getIncomingValueForBlock(Middle))
      IsComplete &= pleach::dependentHeaderPhis(Phi, *L, Sources);
  pleach::ChainsFrom Chains(Sources, L, Latencies);
  return Chains.to(T.First->getCondition()) >= 0 || !IsComplete || !Chains.areComplete();
}

} // namespace

extern "C" {

// Whether a terminator is an unpredictable branch (or, if `Any`, any branch) that can be if-converted; writes the cost.
bool pleach_arms(LLVMValueRef Terminator, bool Any, const PleachLatencies *Latencies, PleachArms *Out) {
  auto *I = unwrap<Instruction>(Terminator);
  if (!Any && !I->hasMetadata(LLVMContext::MD_unpredictable))
    return false;
  std::optional<Arms> Found = armsOf(I, MaxDepth);
  if (!Found)
    return false;
  *Out = describe(*Found, MaxDepth);
  if (!Any)
    Out->Chain = conditionChain(*Found, *Latencies);
  for (int Arm : {0, 1})
    Out->Results[Arm] = resultsOf(Found->Blocks[Arm], *Found->Join, *Latencies);
  return true;
}

// If-converts a branch that `pleach_arms` accepts.
void pleach_if_convert(LLVMValueRef Terminator) {
  convert(unwrap<BranchInst>(Terminator), MaxDepth);
}

// Whether a terminator is an unpredictable branch (or, if `Any`, any branch) that makes the first of two tests which can
// be joined; writes the cost.
bool pleach_tests(LLVMValueRef Terminator, bool Any, const PleachLatencies *Latencies, PleachTests *Out) {
  auto *I = unwrap<Instruction>(Terminator);
  if (!Any && !I->hasMetadata(LLVMContext::MD_unpredictable))
    return false;
  const std::optional<Tests> Found = testsOf(I);
  if (!Found)
    return false;
  BasicBlock &Middle = *Found->Second->getParent();
  *Out = {sizeOf(&Middle),
          0,
          probability(*Found->First, Found->Succeeds[0]),
          probability(*Found->Second, Found->Succeeds[1]),
          mispredictionRate(*Found->First),
          resultsOf(&Middle, *Found->failed(), *Latencies),
          !Any && isLoopCarried(*Found, *Latencies)};
  for (Instruction &In : Middle)
    Out->Selects += isAccess(In) && !isSafe(&In, Found->First);
  for (PHINode &Phi : Found->failed()->phis())
    Out->Selects += Phi.getIncomingValueForBlock(Found->First->getParent()) != Phi.getIncomingValueForBlock(&Middle);
  return true;
}

// Joins the tests that `pleach_tests` found.
void pleach_join_tests(LLVMValueRef Terminator) {
  if (const std::optional<Tests> Found = testsOf(unwrap<Instruction>(Terminator)))
    join(*Found);
}

// Whether a function's code may be executed speculatively with guarded addresses.
bool pleach_may_if_convert(LLVMValueRef V) {
  Function &F = *unwrap<Function>(V);
  // Sanitizers would report accesses that the source does not have.
  constexpr Attribute::AttrKind Without[] = {
      Attribute::Naked,          Attribute::SanitizeAddress, Attribute::SanitizeHWAddress,
      Attribute::SanitizeMemory, Attribute::SanitizeMemTag,  Attribute::SanitizeNumericalStability,
      Attribute::SanitizeThread, Attribute::SanitizeType,    Attribute::SpeculativeLoadHardening};
  return F.getDataLayout().getAllocaAddrSpace() == 0 && !F.hasOptNone() && !F.hasOptSize() && !F.hasGC() &&
         !F.isPresplitCoroutine() &&
         llvm::none_of(Without, [&](Attribute::AttrKind Kind) { return F.hasFnAttribute(Kind); });
}

} // extern "C"
