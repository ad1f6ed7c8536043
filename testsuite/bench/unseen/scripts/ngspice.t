ring of inverters
.model n nmos level=1 vto=0.7 kp=110u gamma=0.4 lambda=0.04 phi=0.7 cgso=0.2n cgdo=0.2n cj=0.5m
.model p pmos level=1 vto=-0.7 kp=50u gamma=0.5 lambda=0.05 phi=0.8 cgso=0.2n cgdo=0.2n cj=0.6m
.subckt inv in out vdd
mp out in vdd vdd p w=4u l=1u ad=8p as=8p
mn out in 0 0 n w=2u l=1u ad=4p as=4p
c1 out 0 20f
.ends
vdd vdd 0 3.3 pulse(0 3.3 0 1n 1n 1 2)
x1 1 2 vdd inv
x2 2 3 vdd inv
x3 3 4 vdd inv
x4 4 5 vdd inv
x5 5 6 vdd inv
x6 6 7 vdd inv
x7 7 1 vdd inv
.ic v(1)=0
.control
tran 20p 250n uic
wrdata ngspice.out v(1) v(4)
quit 0
.endc
.end
