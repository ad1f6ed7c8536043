" Functions, numbers, lists, dictionaries, strings: no text is edited.
function Fib(n)
  return a:n < 2 ? a:n : Fib(a:n - 1) + Fib(a:n - 2)
endfunction
let out = [Fib(17)]
function Sieve(n)
  let composite = repeat([0], a:n + 1)
  let primes = []
  for i in range(2, a:n)
    if !composite[i]
      call add(primes, i)
      let j = i * i
      while j <= a:n
        let composite[j] = 1
        let j += i
      endwhile
    endif
  endfor
  return primes
endfunction
call add(out, Sieve(8000)[-3:])
let times = {}
let seed = 7
for i in range(12000)
  let seed = seed * 16807 % 2147483647
  let key = printf('%s-%03d', nr2char(97 + seed % 26), seed % 250)
  let times[key] = get(times, key, 0) + 1
endfor
let keys = sort(keys(times), {a, b -> g:times[a] == g:times[b] ? (a < b ? -1 : 1) : g:times[b] - g:times[a]})
call add(out, join(map(keys[:20], 'v:val . "=" . times[v:val]'), ' '))
let words = split(join(map(range(4000), {_, n -> n % 7 ? 'w' . n % 50 : toupper('x' . n)})))
call add(out, len(filter(copy(words), 'v:val =~# "^w\\d*[3-7]$"')))
call add(out, strlen(substitute(join(words), '\vw(\d)(\d)', '\2\1', 'g')))
let tree = {}
for i in range(2500)
  let seed = seed * 16807 % 2147483647
  let node = tree
  while has_key(node, 'key')
    let side = seed < node.key ? 'left' : 'right'
    if !has_key(node, side)
      let node[side] = {}
    endif
    let node = node[side]
  endwhile
  let node.key = seed
endfor
function Depth(node)
  return empty(a:node) ? 0 : 1 + max([Depth(get(a:node, 'left', {})), Depth(get(a:node, 'right', {}))])
endfunction
call add(out, Depth(tree))
call add(out, len(json_encode(tree)))
call add(out, string(json_decode(json_encode(keys[:5]))))
def Mandelbrot(size: number): string
  var rows = ''
  for y in range(size)
    for x in range(size)
      var r = 0.0
      var i = 0.0
      var n = 0
      while n < 40 && r * r + i * i < 4.0
        var next = r * r - i * i + x * 3.0 / size - 2.0
        i = 2.0 * r * i + y * 2.0 / size - 1.0
        r = next
        n += 1
      endwhile
      rows ..= n < 40 ? '.' : '#'
    endfor
  endfor
  return rows
enddef
call add(out, Mandelbrot(45))
%delete _
call setline(1, map(out, 'string(v:val)'))
%print
qall!
