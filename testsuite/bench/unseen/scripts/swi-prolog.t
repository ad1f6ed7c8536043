% Parsing, strings, lists and a database.
:- initialization(main).
:- dynamic(count/2).

expression(V) --> term(T), rest(T, V).
rest(L, V) --> "+", !, term(T), { W is L + T }, rest(W, V).
rest(L, V) --> "-", !, term(T), { W is L - T }, rest(W, V).
rest(V, V) --> [].
term(V) --> factor(F), more(F, V).
more(L, V) --> "*", !, factor(F), { W is (L * F) mod 1000003 }, more(W, V).
more(V, V) --> [].
factor(V) --> "(", !, expression(V), ")".
factor(V) --> digits([D | Ds]), { number_codes(V, [D | Ds]) }.
digits([D | T]) --> [D], { code_type(D, digit) }, !, digits(T).
digits([]) --> [].

formula(0, "7").
formula(N, S) :-
    N > 0, M is N - 1, formula(M, A), K is N mod 3 + N,
    ( N mod 2 =:= 0 -> format(string(S), "(~s+~d)*~d-~s", [A, N, K, A]) ; format(string(S), "~d*(~s)+12", [K, A]) ).

increment(Key) :- ( retract(count(Key, N)) -> M is N + 1 ; M = 1 ), assertz(count(Key, M)).

words(0, _, []) :- !.
words(N, Seed, [W | Ws]) :-
    Next is Seed * 16807 mod 2147483647, I is Next mod 90, atom_concat(word, I, W), M is N - 1, words(M, Next, Ws).

reversed(L, R) :- reversed(L, [], R).
reversed([], R, R).
reversed([H | T], A, R) :- reversed(T, [H | A], R).

main :-
    formula(24, S), string_codes(S, Codes), phrase(expression(V), Codes), writeln(V),
    words(60000, 7, Words), forall('$member'(W, Words), increment(W)),
    findall(N-K, count(K, N), Pairs), keysort(Pairs, Sorted), reversed(Sorted, [Most | _]), writeln(Most),
    atomic_list_concat(Words, ' ', Text), atom_length(Text, Length), writeln(Length),
    atomic_list_concat(Parts, 'word1', Text), length(Parts, Count), writeln(Count),
    sort(0, @>, Words, Descending), length(Descending, Different), writeln(Different),
    findall(X, ('$member'(A, Parts), sub_atom(A, B, 1, _, '7'), X is B mod 10), Places), msort(Places, In),
    length(In, Sevens), writeln(Sevens), halt.
