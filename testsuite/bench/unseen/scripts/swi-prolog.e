% Search, recursion and arithmetic.
:- initialization(main).

range(N, N, [N]) :- !.
range(M, N, [M | T]) :- M < N, K is M + 1, range(K, N, T).
pick(X, [X | T], T).
pick(X, [H | T], [H | R]) :- pick(X, T, R).
queens(N, Qs) :- range(1, N, Ns), queens(Ns, [], Qs).
queens([], Qs, Qs).
queens(Unplaced, Safe, Qs) :- pick(Q, Unplaced, R), safe(Q, 1, Safe), queens(R, [Q | Safe], Qs).
safe(_, _, []).
safe(Q, D, [H | T]) :- Q =\= H + D, Q =\= H - D, E is D + 1, safe(Q, E, T).

append3([], L, L).
append3([H | T], L, [H | R]) :- append3(T, L, R).
nreverse([], []).
nreverse([H | T], R) :- nreverse(T, S), append3(S, [H], R).

fib(0, 0).
fib(1, 1).
fib(N, F) :- N > 1, A is N - 1, B is N - 2, fib(A, X), fib(B, Y), F is X + Y.

derive(X, X, 1) :- !.
derive(N, _, 0) :- number(N), !.
derive(A + B, X, C + D) :- derive(A, X, C), derive(B, X, D).
derive(A * B, X, A * D + C * B) :- derive(A, X, C), derive(B, X, D).
derive(sin(A), X, cos(A) * C) :- derive(A, X, C).
derive(cos(A), X, -1 * (sin(A) * C)) :- derive(A, X, C).
size(T, 1) :- atomic(T), !.
size(T, N) :- T =.. [_ | As], sizes(As, 1, N).
sizes([], N, N).
sizes([H | T], A, N) :- size(H, M), B is A + M, sizes(T, B, N).

edge(A, B) :- B is (A * 3 + 1) mod 97.
edge(A, B) :- B is (A + 7) mod 97.
path(A, A, _, [A]).
path(A, B, N, [A | P]) :- N > 0, edge(A, C), M is N - 1, path(C, B, M, P).

main :-
    queens(12, Qs), print(Qs), nl,
    range(1, 1300, L), nreverse(L, [R | _]), print(R), nl,
    fib(23, F), print(F), nl,
    E = sin(x * x) * cos(3 * x + sin(x)), derive(E, x, A), derive(A, x, B), derive(B, x, C), derive(C, x, D),
    size(D, S), print(S), nl,
    findall(P, path(5, 60, 17, P), Ps), length(Ps, N), print(N), nl,
    findall(Q, queens(8, Q), All), length(All, Ways), print(Ways), nl, halt.
