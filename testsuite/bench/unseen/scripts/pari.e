/* Polynomials, matrices and real numbers. */
default(realprecision,60);
print(matdet(matrix(90,90,i,j,(i*j+3*i)%17-8)))
M=matrix(55,55,i,j,1/(i+j-1));print(trace(M^-1))
p=prod(i=1,60,x^2+i*x-7);print(poldegree(gcd(p,p')));print(#factor(p*(x^12-1))~)
print(intnum(t=0,3,exp(-t^2)*sin(t)));print(zeta(3)+gamma(1/3))
print(lindep([Pi,atan(1),log(2)]));print(qflll(matrix(34,34,i,j,if(i==j,1000+i,i*j%7))))
S=sum(k=0,200,x^k/k!)+O(x^190);print(polcoef(exp(log(S))^2,7));print(solve(y=1,2,y^3-y-1))
print(polroots(x^70-3*x^7+1)[1]);v=vecsort(vector(200000,i,(i*7919)%10007));print(v[5000])
