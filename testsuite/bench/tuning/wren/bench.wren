// Small programs. Bench.run(seed, "NAMEn,NAMEn…") runs each n times and returns a line with the sums.

class R {
  static seed(n) { __state = (n * 40503 + 12345) % 2147483647 }
  static below(bound) {
    __state = (__state * 16807) % 2147483647
    return __state % bound
  }
  static mix(sum, value) { (sum * 31 + value) % 1000003 }
  static word() {
    var syllables = ["ka", "lo", "mer", "ti", "an", "dro", "sul", "pe", "vi", "o"]
    var text = ""
    for (i in 0..below(3)) text = text + syllables[below(10)]
    return text
  }
}

class Queens {
  construct new(n) {
    _n = n
    _columns = List.filled(n, false)
    _rising = List.filled(2 * n, false)
    _falling = List.filled(2 * n, false)
    _found = 0
  }
  place(row) {
    if (row == _n) {
      _found = _found + 1
      return
    }
    for (c in 0..._n) {
      if (!_columns[c] && !_rising[row + c] && !_falling[row - c + _n]) {
        mark(row, c, true)
        place(row + 1)
        mark(row, c, false)
      }
    }
  }
  mark(row, c, value) {
    _columns[c] = value
    _rising[row + c] = value
    _falling[row - c + _n] = value
  }
  found { _found }
}

class Node {
  construct new(key) {
    _key = key
  }
  key { _key }
  left { _left }
  left=(node) { _left = node }
  right { _right }
  right=(node) { _right = node }
  insert(key) {
    if (key < _key) {
      if (_left == null) {
        _left = Node.new(key)
      } else {
        _left.insert(key)
      }
    } else if (key > _key) {
      if (_right == null) {
        _right = Node.new(key)
      } else {
        _right.insert(key)
      }
    }
  }
  sum(depth) {
    var total = _key + depth
    if (_left != null) total = R.mix(total, _left.sum(depth + 1))
    if (_right != null) total = R.mix(total, _right.sum(depth + 1))
    return total
  }
}

class Shape {
  construct new(size) { _size = size }
  size { _size }
  area { 0 }
  grow(by) {
    _size = _size + by
    return this
  }
  bigger(other) { area > other.area ? this : other }
}
class Square is Shape {
  construct new(size) { super(size) }
  area { size * size }
}
class Disc is Shape {
  construct new(size) { super(size) }
  area { (3.14159 * size * size).floor }
  grow(by) { super.grow(by * 2) }
}
class Frame is Shape {
  construct new(inner, size) {
    super(size)
    _inner = inner
  }
  area { _inner.area + 4 * size }
  grow(by) {
    _inner.grow(by)
    return super.grow(1)
  }
}

// Tasks with dependencies, started when all before them are done.
class Task {
  construct new(id) {
    _id = id
    _before = 0
    _after = []
    _cost = 1 + R.below(20)
  }
  id { _id }
  cost { _cost }
  needs(task) {
    _before = _before + 1
    task.after.add(this)
  }
  after { _after }
  ready { _before == 0 }
  release() { _before = _before - 1 }
}

class Parser {
  construct new(text) {
    _text = text
    _at = 0
  }
  peek { _at < _text.count ? _text[_at] : "" }
  next() {
    var c = peek
    _at = _at + 1
    return c
  }
  sum() {
    var value = product()
    while (peek == "+" || peek == "-") {
      value = next() == "+" ? value + product() : value - product()
    }
    return value
  }
  product() {
    var value = atom()
    while (peek == "*") {
      next()
      value = (value * atom()) % 65537
    }
    return value
  }
  atom() {
    if (peek == "(") {
      next()
      var value = sum()
      next()
      return value
    }
    var start = _at
    while ("0123456789".contains(peek) && peek != "") next()
    return Num.fromString(_text[start..._at])
  }
}

class Bench {
  static queens() { // finds all solutions for six or seven
    var board = Queens.new(6 + R.below(2))
    board.place(0)
    return board.found
  }
  static trees() {
    var root = Node.new(500)
    for (i in 0...300) root.insert(R.below(1000))
    return root.sum(0)
  }
  static shapes() {
    var shapes = []
    for (i in 0...60) {
      var kind = R.below(3)
      var size = R.below(20)
      shapes.add(kind == 0 ? Square.new(size) : (kind == 1 ? Disc.new(size) : Frame.new(Square.new(size), 3)))
    }
    var sum = 0
    var best = shapes[0]
    for (step in 0...5) {
      for (shape in shapes) {
        best = best.bigger(shape.grow(step))
        sum = R.mix(sum, shape.area)
      }
    }
    return R.mix(sum, best.area)
  }
  static words() {
    var count = {}
    var text = (0...200).map {|i| R.word() }.join(" ")
    for (word in text.split(" ")) count[word] = (count.containsKey(word) ? count[word] : 0) + 1
    var sum = 0
    for (word in count.keys.where {|word| word.startsWith("ka") || word.endsWith("o") }) sum = sum + count[word] * word.count
    return R.mix(sum, count.count)
  }
  static maps() {
    var map = {}
    for (i in 0...600) {
      var key = R.below(400)
      if (map.containsKey(key)) {
        if (R.below(2) == 0) map.remove(key)
      } else {
        map[key] = i
      }
    }
    var sum = map.count
    for (key in 0...400) if (map[key] != null) sum = R.mix(sum, map[key])
    return sum
  }
  static fibers() {
    var numbers = Fiber.new {
      for (i in 0...150) Fiber.yield(R.below(100))
    }
    var odd = Fiber.new {
      while (!numbers.isDone) {
        var x = numbers.call()
        if (x != null && x % 2 == 1) Fiber.yield(x)
      }
    }
    var sum = 0
    while (!odd.isDone) {
      var x = odd.call()
      if (x != null) sum = R.mix(sum, x)
    }
    return sum
  }
  static sums() {
    var k = 1 + R.below(50)
    var add = Fn.new {|a, b| (a + b * k) % 9973 }
    return (1..200).map {|x| x * x % 101 }.where {|x| x > 20 }.reduce(0, add) + (1..30).toList[3..12].reduce(add)
  }
  static life() {
    var width = 24
    var height = 16
    var cells = (0...width * height).map {|i| R.below(3) == 0 ? 1 : 0 }.toList
    for (step in 0...3) {
      var next = []
      for (y in 0...height) {
        var above = (y + height - 1) % height * width
        var row = y * width
        var below = (y + 1) % height * width
        for (x in 0...width) {
          var left = x > 0 ? x - 1 : width - 1
          var right = x + 1 < width ? x + 1 : 0
          var n = cells[above + left] + cells[above + x] + cells[above + right] + cells[row + left] + cells[row + right] + cells[below + left] + cells[below + x] + cells[below + right]
          next.add(n == 3 || (n == 2 && cells[row + x] == 1) ? 1 : 0)
        }
      }
      cells = next
    }
    var sum = 0
    for (i in 0...cells.count) if (cells[i] == 1) sum = R.mix(sum, i)
    return sum
  }
  static sort() {
    var list = (0...200).map {|i| R.below(10000) }.toList
    sortPart(list, 0, list.count - 1)
    var sum = 0
    for (x in list) sum = R.mix(sum, x)
    return sum
  }
  static sortPart(list, low, high) {
    while (low < high) {
      var pivot = list[((low + high) / 2).floor]
      var i = low
      var j = high
      while (i <= j) {
        while (list[i] < pivot) i = i + 1
        while (list[j] > pivot) j = j - 1
        if (i <= j) {
          var kept = list[i]
          list[i] = list[j]
          list[j] = kept
          i = i + 1
          j = j - 1
        }
      }
      sortPart(list, low, j)
      low = i
    }
  }
  static planner() {
    var tasks = (0...80).map {|i| Task.new(i) }.toList
    for (i in 0...200) {
      var a = R.below(80)
      var b = R.below(80)
      if (a < b) tasks[b].needs(tasks[a])
    }
    var ready = tasks.where {|task| task.ready }.toList
    var clock = 0
    var sum = 0
    while (ready.count > 0) {
      var at = 0
      for (i in 1...ready.count) if (ready[i].cost < ready[at].cost) at = i
      var task = ready.removeAt(at)
      clock = clock + task.cost
      sum = R.mix(sum, clock + task.id)
      for (after in task.after) {
        after.release()
        if (after.ready) ready.add(after)
      }
    }
    return sum
  }
  static expression(depth) {
    if (depth == 0) return R.below(100).toString
    var inner = expression(depth - 1) + ["+", "-", "*"][R.below(3)] + expression(depth - 1)
    return R.below(2) == 0 ? "(" + inner + ")" : inner
  }
  static parse() { Parser.new(expression(5)).sum().abs % 1000003 }

  static run(seed, items) {
    R.seed(seed)
    var programs = {
      "queens": Fn.new { queens() }, "trees": Fn.new { trees() }, "shapes": Fn.new { shapes() }, "words": Fn.new { words() },
      "maps": Fn.new { maps() }, "fibers": Fn.new { fibers() }, "sums": Fn.new { sums() }, "life": Fn.new { life() },
      "sort": Fn.new { sort() }, "planner": Fn.new { planner() }, "parse": Fn.new { parse() }
    }
    var results = []
    for (item in items.split(",")) {
      var end = 0
      while (!"0123456789".contains(item[end])) end = end + 1
      var program = programs[item[0...end]]
      var sum = 0
      for (round in 0...Num.fromString(item[end..-1])) sum = R.mix(sum, program.call())
      results.add(item + "=" + sum.toString)
    }
    return results.join(" ")
  }
}
