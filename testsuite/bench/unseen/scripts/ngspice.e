amplifier of bipolar transistors
.model q npn is=1e-15 bf=120 vaf=80 ikf=50m rb=100 rc=10 re=0.5 cje=1p cjc=0.7p tf=0.2n tr=10n
.model qp pnp is=5e-16 bf=60 vaf=50 rb=150 cje=1p cjc=1p tf=1n
.model d d is=1e-14 rs=5 cjo=2p tt=5n
vcc vcc 0 12
vee vee 0 -12
vin in 0 dc 0 ac 1 sin(0 5m 10k)
q1 c1 in e q
q2 c2 fb e q
ie e vee 1m
q3 c1 c1 vcc qp
q4 c2 c1 vcc qp
q5 o1 c2 vcc qp
r5 o1 vee 6k
cc c2 o1 10p
q6 vcc o1 m1 q
q7 vee o2 m2 qp
d1 o1 d2 d
d2 d2 o2 d
ib o2 vee 1m
r6 m1 out 20
r7 m2 out 20
rl out 0 1k
rf out fb 100k
rg fb 0 1k
.control
op
print v(out) v(e)
ac dec 2000 10 100meg
wrdata ngspice.out.ac vdb(out) vp(out)
noise v(out) vin dec 100 10 10meg
print inoise_total onoise_total
dc vin -0.1 0.1 0.00002 temp 0 60 30
wrdata ngspice.out v(out)
quit 0
.endc
.end
