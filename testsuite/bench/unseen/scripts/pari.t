/* Number theory. */
s=0;for(n=10^15,10^15+6000,s+=omega(n));print(s)
print(nfinit(x^4-x^3+7*x-5).disc)
E=ellinit([0,-1,1,-10,-20]);print(vecsum(vector(90000,n,ellak(E,n))))
print(sum(n=1,300000,moebius(n)*sigma(n)))
f=polsubcyclo(31,5);print(factormod(f,101));print(polgalois(x^5-2))
print(bnfinit(x^2+12345).cyc)
for(i=1,9000,znorder(Mod(i,10007)));
print(factor((10^30+7)*(10^14+31)))
print(qfbclassno(-4*10^13-3));s=0;forprime(p=2,3000000,s+=kronecker(5,p));print(s)
