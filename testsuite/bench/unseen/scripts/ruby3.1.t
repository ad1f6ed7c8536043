# Strings, hashes, blocks.
seed = 11
rnd = ->(n) { seed = (seed * 1103515245 + 12345) % 2147483648; seed % n }
syllables = %w[ka lo mi ter un sa pre do vi ex con tra bel nor]
count = Hash.new(0)
index = {}
30000.times do |line|
  words = Array.new(8) { Array.new(1 + rnd[3]) { syllables[rnd[14]] }.join }
  text = words.join(' ').gsub(/(\w+)ter\b/) { $1.upcase }
  words.each_with_index { |w, i| count[w] += 1; (index[w[0, 3].to_sym] ||= []) << line * i }
  text.tr!('aeiou', 'AEIOU') if line % 3 == 0
  count[text[/\b\wk\w+/] || 'none'] += 1
end
count.sort_by { |w, n| [-n, w] }.first(20).each { |w, n| puts "#{w} #{n}" }
puts index.map { |k, v| "#{k}: #{v.select(&:even?).sum}" }.sort
