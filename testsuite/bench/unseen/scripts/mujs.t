// Objects, closures, sorting, strings and regular expressions.
function Queue() { this.items = []; }
Queue.prototype.push = function (x) {
  var a = this.items, i = a.length, p;
  a.push(x);
  while (i > 0 && a[p = (i - 1) >> 1].key > a[i].key) { var t = a[p]; a[p] = a[i]; a[i] = t; i = p; }
};
Queue.prototype.pop = function () {
  var a = this.items, top = a[0], last = a.pop(), i = 0, c;
  if (a.length) {
    a[0] = last;
    while ((c = 2 * i + 1) < a.length) {
      if (c + 1 < a.length && a[c + 1].key < a[c].key) c++;
      if (a[i].key <= a[c].key) break;
      var t = a[i]; a[i] = a[c]; a[c] = t; i = c;
    }
  }
  return top;
};
var q = new Queue(), seed = 7, sum = 0;
function next() { return seed = (seed * 16807) % 2147483647; }
for (var i = 0; i < 9000; i++) q.push({ key: next() % 5000, name: 'n' + i });
for (var k = 0; q.items.length; k++) sum = (sum * 31 + q.pop().key * k) % 1000003;
print(sum);
var words = {}, text = [];
for (var j = 0; j < 12000; j++) text.push('w' + next() % 400 + (next() % 9 ? '' : '.'));
text.join(' ').split(/[ .]+/).forEach(function (w) { words[w] = (words[w] || 0) + 1; });
print(Object.keys(words).sort(function (a, b) { return words[b] - words[a] || (a < b ? -1 : 1); }).slice(0, 5));
print(text.join(' ').replace(/w(\d)(\d+)\./g, function (all, a, b) { return b + a; }).length);
