# Objects, arithmetic, recursion.
class Tree
  attr_reader :key, :left, :right
  def initialize(key) = (@key = key)
  def insert(key)
    return self if key == @key
    if key < @key
      @left ? @left.insert(key) : @left = Tree.new(key)
    else
      @right ? @right.insert(key) : @right = Tree.new(key)
    end
  end
  def depth = 1 + [@left&.depth || 0, @right&.depth || 0].max
end
Point = Struct.new(:x, :y) do
  def +(other) = Point.new(x + other.x, y + other.y)
end
x = 42
tree = Tree.new(500)
20000.times { x = (x * 16807) % 2147483647; tree.insert(x % 30000) }
puts tree.depth
def fib(n) = n < 2 ? n : fib(n - 1) + fib(n - 2)
puts fib(24)
grid = Array.new(60) { |i| Array.new(60) { |j| (i * 7 + j * 3) % 5 < 2 ? 1 : 0 } }
5.times do
  grid = Array.new(60) do |i|
    Array.new(60) do |j|
      n = 0
      (-1..1).each { |di| (-1..1).each { |dj| n += grid[(i + di) % 60][(j + dj) % 60] unless di == 0 && dj == 0 } }
      n == 3 || (n == 2 && grid[i][j] == 1) ? 1 : 0
    end
  end
end
puts grid.map(&:join)
at = (1..30000).reduce(Point.new(0, 0)) { |sum, i| sum + Point.new(i % 7, -i % 5) }
p at, (1..400).reduce(:*).to_s.length
puts (2..6000).select { |n| (2..Math.sqrt(n)).none? { |d| (n % d).zero? } }.size
