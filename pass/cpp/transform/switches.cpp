// Compares with frequent cases of a switch before its jump through a table. The Rust half chooses the cases.
#include "pleach.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/BlockFrequencyInfo.h"
#include "llvm/Analysis/BranchProbabilityInfo.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ProfileSummaryInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/ProfDataUtils.h"

using namespace llvm;

namespace {

// Adjacent cases with the same destination, which is not the default one.
struct Range {
  APInt First, Last;
  BasicBlock *To;
  uint64_t Weight;
};

// As code generation joins cases, in signed order. Empty if there are no weights.
SmallVector<Range, 8> ranges(const SwitchInst &Switch) {
  SmallVector<uint32_t, 16> Weights;
  SmallVector<Range, 8> Cases, Joined;
  if (!extractBranchWeights(Switch, Weights))
    return Joined;
  for (const auto &Case : Switch.cases()) {
    const APInt &Value = Case.getCaseValue()->getValue();
    auto *To = const_cast<BasicBlock *>(Case.getCaseSuccessor());
    if (To != Switch.getDefaultDest())
      Cases.push_back({Value, Value, To, Weights[Case.getSuccessorIndex()]});
  }
  sort(Cases, [](const Range &A, const Range &B) { return A.First.slt(B.First); });
  for (const Range &Case : Cases)
    if (!Joined.empty() && Joined.back().To == Case.To && Joined.back().Last + 1 == Case.First) {
      Joined.back().Last = Case.Last;
      Joined.back().Weight += Case.Weight;
    } else {
      Joined.push_back(Case);
    }
  return Joined;
}

bool isPossible(const BasicBlock &Default) { return !isa<UnreachableInst>(*Default.getFirstNonPHIOrDbg()); }

// The weight of the default destination and of cases that go there, too.
uint64_t defaultWeight(const SwitchInst &Switch) {
  SmallVector<uint32_t, 16> Weights;
  uint64_t Weight = 0;
  if (extractBranchWeights(Switch, Weights))
    for (unsigned Slot = 0; Slot < Switch.getNumSuccessors(); ++Slot)
      Weight += Switch.getSuccessor(Slot) == Switch.getDefaultDest() ? Weights[Slot] : 0;
  return Weight;
}

// An end of the interval of the share of mispredicted executions, in thousandths; negative if it is not known, as of
// switches that the optimiser made of comparisons, or joined with them.
int32_t mispredicted(const SwitchInst &Switch, unsigned End) {
  const MDNode *Known = Switch.getMetadata(PleachSwitchMetadata);
  if (!Known || Known->getNumOperands() != 2)
    return -1;
  const auto *Low = mdconst::dyn_extract_or_null<ConstantInt>(Known->getOperand(0));
  const auto *High = mdconst::dyn_extract_or_null<ConstantInt>(Known->getOperand(1));
  if (!Low || !High || Low->getLimitedValue(1000) > High->getLimitedValue(1000))
    return -1;
  return static_cast<int32_t>((End == 0 ? Low : High)->getLimitedValue(1000));
}

// Whether code generation makes tables of jumps as on x86, which the costs are of.
bool makesTables(const Function &F) {
  const Triple &Target = F.getParent()->getTargetTriple();
  const StringRef Features = F.getFnAttribute("target-features").getValueAsString();
  return (Target.getArch() == Triple::UnknownArch || Target.isX86()) && !F.hasOptNone() &&
         !F.getFnAttribute("no-jump-tables").getValueAsBool() && !Features.contains("+retpoline-indirect-branches") &&
         !Features.contains("+lvi-cfi");
}

bool mayHaveTable(const SwitchInst &Switch) {
  return Switch.getCondition()->getType()->getIntegerBitWidth() <= 64;
}

// Weights have 32 bits.
MDNode *branchWeights(LLVMContext &Context, uint64_t Taken, uint64_t Otherwise) {
  while (Taken > UINT32_MAX || Otherwise > UINT32_MAX) {
    Taken = (Taken + 1) / 2;
    Otherwise = (Otherwise + 1) / 2;
  }
  return MDBuilder(Context).createBranchWeights(Taken, Otherwise);
}

// The values of φs for edges from a block, whose number changes.
class IncomingValues {
  SmallVector<std::pair<PHINode *, Value *>, 8> Values;

public:
  explicit IncomingValues(BasicBlock &From) {
    SmallPtrSet<BasicBlock *, 8> Seen;
    for (BasicBlock *To : successors(&From))
      if (Seen.insert(To).second)
        for (PHINode &Phi : To->phis()) {
          Values.push_back({&Phi, Phi.getIncomingValueForBlock(&From)});
          Phi.removeIncomingValueIf([&](unsigned Edge) { return Phi.getIncomingBlock(Edge) == &From; },
                                    /*DeletePHIIfEmpty=*/false);
        }
  }

  void addEdge(BasicBlock *From, const BasicBlock *To) {
    for (auto [Phi, Incoming] : Values)
      if (Phi->getParent() == To)
        Phi->addIncoming(Incoming, From);
  }
};

Value *isIn(IRBuilder<> &Builder, Value *V, const Range &R) {
  auto *First = ConstantInt::get(V->getType(), R.First);
  if (R.First == R.Last)
    return Builder.CreateICmpEQ(V, First);
  return Builder.CreateICmpULE(Builder.CreateSub(V, First), ConstantInt::get(V->getType(), R.Last - R.First));
}

// Removes the cases of a range.
void remove(SwitchInst &Switch, const Range &R) {
  SwitchInstProfUpdateWrapper Updated(Switch);
  for (auto Case = Switch.case_begin(); Case != Switch.case_end();) {
    const APInt &Value = Case->getCaseValue()->getValue();
    const bool IsIn = Case->getCaseSuccessor() == R.To && Value.sge(R.First) && Value.sle(R.Last);
    Case = IsIn ? Updated.removeCase(Case) : std::next(Case);
  }
}

} // namespace

extern "C" {

// Finds the hot switches of a function with weights and at least so many ranges of cases; writes at most `Capacity`.
// `Any`: rare ones, too.
size_t pleach_find_hot_switches(LLVMValueRef V, uint32_t MinRanges, bool Any, PleachSwitch *Found, size_t Capacity) {
  Function &F = *unwrap<Function>(V);
  if (!F.getEntryCount() || !makesTables(F) || (F.hasOptSize() && !Any))
    return 0;
  SmallVector<SwitchInst *, 8> Switches;
  for (BasicBlock &BB : F) {
    auto *Switch = dyn_cast<SwitchInst>(BB.getTerminator());
    if (Switch && Switch->getNumCases() >= MinRanges && mayHaveTable(*Switch) && ranges(*Switch).size() >= MinRanges)
      Switches.push_back(Switch);
  }
  if (Switches.empty())
    return 0;
  DominatorTree DT(F);
  LoopInfo LI(DT);
  BranchProbabilityInfo BPI(F, LI);
  BlockFrequencyInfo BFI(F, BPI, LI);
  ProfileSummaryInfo PSI(*F.getParent());
  size_t Count = 0;
  for (SwitchInst *Switch : Switches) {
    const auto Executions = BFI.getBlockProfileCount(Switch->getParent());
    if (!Executions || !(Any || PSI.isHotCount(*Executions)) || Count == Capacity)
      continue;
    Found[Count++] = {wrap(Switch),
                      static_cast<double>(*Executions),
                      static_cast<double>(defaultWeight(*Switch)),
                      mispredicted(*Switch, 0),
                      mispredicted(*Switch, 1),
                      static_cast<uint32_t>(ranges(*Switch).size()),
                      isPossible(*Switch->getDefaultDest())};
  }
  return Count;
}

// Writes the ranges of a switch. Destinations are numbers from 1 on; 0 is the default one.
void pleach_switch_ranges(LLVMValueRef V, PleachCaseRange *Out) {
  const auto &Switch = *cast<SwitchInst>(unwrap<Instruction>(V));
  SmallDenseMap<const BasicBlock *, uint32_t> Numbers;
  for (const Range &R : ranges(Switch)) {
    const uint32_t Number = Numbers.try_emplace(R.To, Numbers.size() + 1).first->second;
    *Out++ = {R.First.getSExtValue(), R.Last.getSExtValue(), static_cast<double>(R.Weight), Number};
  }
}

// Compares with these ranges of a switch, in this order, before the rest of it.
void pleach_compare_before_switch(LLVMValueRef V, const uint32_t *Chosen, size_t Count) {
  auto &Switch = *cast<SwitchInst>(unwrap<Instruction>(V));
  const SmallVector<Range, 8> All = ranges(Switch);
  BasicBlock *Before = Switch.getParent();
  IncomingValues Incoming(*Before);
  uint64_t Left = defaultWeight(Switch);
  for (const Range &R : All)
    Left += R.Weight;
  Switch.setMetadata(PleachSwitchMetadata, nullptr);
  for (const uint32_t Position : ArrayRef(Chosen, Count)) {
    const Range &R = All[Position];
    auto *Otherwise = BasicBlock::Create(Switch.getContext(), "", Before->getParent(), Before->getNextNode());
    Left -= R.Weight;
    remove(Switch, R);
    // One weight is none.
    if (Switch.getNumCases() == 0)
      Switch.setMetadata(LLVMContext::MD_prof, nullptr);
    Switch.removeFromParent();
    IRBuilder<> Builder(Before);
    Builder.SetCurrentDebugLocation(Switch.getDebugLoc());
    Value *Holds = isIn(Builder, Switch.getCondition(), R);
    Builder.CreateCondBr(Holds, R.To, Otherwise, branchWeights(Switch.getContext(), R.Weight, Left));
    Incoming.addEdge(Before, R.To);
    Switch.insertInto(Otherwise, Otherwise->end());
    Before = Otherwise;
  }
  for (BasicBlock *To : successors(Before))
    Incoming.addEdge(Before, To);
}

} // extern "C"
