-- Small Lua programs, each of which takes a size.
--
-- usage: bench.lua MIX     MIX: names with sizes, such as `queens8,json40`; run in that order
--
-- Returns the programs' results as one string.

local results = {}
local function emit(value)
    results[#results + 1] = tostring(value)
end

local programs = {}

-- All ways to place queens on a board of n by n.
function programs.queens(n)
    local solutions = 0

    local function is_safe(columns, row, column)
        for i = 1, row - 1 do
            if columns[i] == column or columns[i] - i == column - row or columns[i] + i == column + row then
                return false
            end
        end
        return true
    end

    local function place(columns, row)
        if row > n then
            solutions = solutions + 1
            return
        end
        for column = 1, n do
            if is_safe(columns, row, column) then
                columns[row] = column
                place(columns, row + 1)
            end
        end
    end

    place({}, 1)
    emit(solutions)
end

-- Reversals of prefixes over all permutations of n.
function programs.fannkuch(n)
    local permutation, copy, count = {}, {}, {}
    local sign, most, sum = 1, 0, 0
    for i = 1, n do
        permutation[i], copy[i], count[i] = i, i, i
    end

    local function count_flips()
        local first = permutation[1]
        if first == 1 then
            return
        end
        for i = 2, n do
            copy[i] = permutation[i]
        end
        local flips = 1
        while true do
            local next_first = copy[first]
            if next_first == 1 then
                sum = sum + sign * flips
                if flips > most then
                    most = flips
                end
                return
            end
            copy[first] = first
            if first >= 4 then
                local i, j = 2, first - 1
                repeat
                    copy[i], copy[j] = copy[j], copy[i]
                    i = i + 1
                    j = j - 1
                until i >= j
            end
            first = next_first
            flips = flips + 1
        end
    end

    -- False after the last permutation.
    local function next_permutation()
        if sign == 1 then
            permutation[1], permutation[2] = permutation[2], permutation[1]
            sign = -1
            return true
        end
        permutation[2], permutation[3] = permutation[3], permutation[2]
        sign = 1
        for i = 3, n do
            local left = count[i]
            if left ~= 1 then
                count[i] = left - 1
                return true
            end
            if i == n then
                return false
            end
            count[i] = i
            local first = permutation[1]
            for j = 1, i do
                permutation[j] = permutation[j + 1]
            end
            permutation[i + 1] = first
        end
        return true
    end

    repeat
        count_flips()
    until not next_permutation()
    emit(sum)
    emit(most)
end

-- Builds and walks binary trees: allocation and garbage collection.
function programs.trees(depth)
    local function build(levels)
        if levels == 0 then
            return {}
        end
        return { build(levels - 1), build(levels - 1) }
    end

    local function count(tree)
        if tree[1] then
            return 1 + count(tree[1]) + count(tree[2])
        end
        return 1
    end

    local nodes = 0
    for _ = 1, 6 do
        nodes = nodes + count(build(depth))
    end
    emit(nodes)
end

local function encode_json(value)
    local kind = type(value)
    if kind == "string" then
        return '"' .. value:gsub('[%c"\\]', function(c)
            return string.format("\\u%04x", c:byte())
        end) .. '"'
    elseif kind ~= "table" then
        return tostring(value)
    end

    local parts = {}
    if #value > 0 then
        for i, element in ipairs(value) do
            parts[i] = encode_json(element)
        end
        return "[" .. table.concat(parts, ",") .. "]"
    end
    local keys = {}
    for key in pairs(value) do
        keys[#keys + 1] = key
    end
    table.sort(keys) -- the order of `pairs` is not fixed
    for i, key in ipairs(keys) do
        parts[i] = string.format("%q:%s", key, encode_json(value[key]))
    end
    return "{" .. table.concat(parts, ",") .. "}"
end

local function decode_json(text)
    local position = 1
    local decode_value

    local function skip_space()
        position = text:find("%S", position) or #text + 1
    end

    local function peek()
        return text:sub(position, position)
    end

    local function skip_comma()
        skip_space()
        if peek() == "," then
            position = position + 1
        end
    end

    local function decode_string()
        local closing = text:find('"', position + 1, true)
        local result = text:sub(position + 1, closing - 1)
        position = closing + 1
        return result
    end

    local function decode_object()
        local result = {}
        position = position + 1
        skip_space()
        while peek() ~= "}" do
            skip_space()
            local key = decode_string()
            skip_space()
            position = position + 1
            result[key] = decode_value()
            skip_comma()
        end
        position = position + 1
        return result
    end

    local function decode_array()
        local result = {}
        position = position + 1
        while peek() ~= "]" do
            result[#result + 1] = decode_value()
            skip_comma()
        end
        position = position + 1
        return result
    end

    function decode_value()
        skip_space()
        local c = peek()
        if c == "{" then
            return decode_object()
        elseif c == "[" then
            return decode_array()
        elseif c == '"' then
            return decode_string()
        end
        local first, last = text:find("^-?[%w%.+-]+", position)
        local word = text:sub(first, last)
        position = last + 1
        return tonumber(word) or word == "true"
    end

    return decode_value()
end

-- Encodes and decodes documents.
function programs.json(n)
    local length = 0
    for i = 1, n do
        local document = {}
        for j = 1, 40 do
            document[j] = {
                id = j * i,
                name = "item" .. j,
                tags = { "a", "b", tostring(j) },
                val = j / 7,
                ok = (j % 2 == 0),
            }
        end
        local text = encode_json(document)
        length = length + #text + #decode_json(text)
    end
    emit(length)
end

-- Pattern matching, counting and sorting of words.
function programs.strings(n)
    local words = {}
    for i = 1, n * 300 do
        words[#words + 1] = ("w%d"):format(i % 977):rep(i % 3 + 1)
    end
    local text = table.concat(words, " ")
    local counts = {}
    for word in text:gmatch("%a%d+") do
        counts[word] = (counts[word] or 0) + 1
    end
    local ordered = {}
    for word in pairs(counts) do
        ordered[#ordered + 1] = word
    end
    table.sort(ordered, function(a, b)
        if counts[a] ~= counts[b] then
            return counts[a] > counts[b]
        end
        return a < b
    end)
    emit(ordered[1] .. #ordered)
    emit(#text:gsub("w(%d)(%d*)", "%2-%1"))
    emit(#text:upper():reverse())
end

-- Five bodies and their gravity: floating-point numbers in fields of tables.
function programs.nbody(n)
    local bodies = {}
    for i = 1, 5 do
        bodies[i] = { x = i * 1.1, y = i * 0.7, z = i * 0.3, vx = 0.01 * i, vy = 0, vz = -0.02 * i, mass = 1 / i }
    end

    local function attract(a, b)
        local dx, dy, dz = a.x - b.x, a.y - b.y, a.z - b.z
        local square = dx * dx + dy * dy + dz * dz + 0.01
        local magnitude = 0.001 / (square * math.sqrt(square))
        a.vx = a.vx - dx * b.mass * magnitude
        a.vy = a.vy - dy * b.mass * magnitude
        a.vz = a.vz - dz * b.mass * magnitude
        b.vx = b.vx + dx * a.mass * magnitude
        b.vy = b.vy + dy * a.mass * magnitude
        b.vz = b.vz + dz * a.mass * magnitude
    end

    for _ = 1, n * 100 do
        for i = 1, 5 do
            for j = i + 1, 5 do
                attract(bodies[i], bodies[j])
            end
        end
        for i = 1, 5 do
            local body = bodies[i]
            body.x = body.x + 0.001 * body.vx
            body.y = body.y + 0.001 * body.vy
            body.z = body.z + 0.001 * body.vz
        end
    end
    emit(string.format("%.9f", bodies[1].x + bodies[2].y))
end

-- Methods through metatables, with inheritance; then coroutines.
function programs.oop(n)
    local Stack = {}
    Stack.__index = Stack

    function Stack.new(total)
        return setmetatable({ total = total, items = {} }, Stack)
    end

    function Stack:push(value)
        self.items[#self.items + 1] = value
        self.total = self.total + value
    end

    function Stack:pop()
        local items = self.items
        local value = items[#items]
        items[#items] = nil
        return value or 0
    end

    local PairStack = setmetatable({}, { __index = Stack })
    PairStack.__index = PairStack

    function PairStack:pop_two()
        return self:pop() + self:pop()
    end

    local stack = setmetatable(Stack.new(0), PairStack)
    local popped = 0
    for i = 1, n * 200 do
        stack:push(i % 13)
        stack:push(i % 7)
        if i % 2 == 0 then
            popped = popped + stack:pop_two()
        end
    end
    emit(popped)

    local generate = coroutine.wrap(function()
        for i = 1, n * 50 do
            coroutine.yield(i)
        end
        return 0
    end)
    local total = 0
    for _ = 1, n * 50 do
        total = total + generate()
    end
    emit(total)
end

-- Sorts numbers, then their decimal strings.
function programs.sort(n)
    local numbers, state = {}, 42
    for i = 1, n * 100 do
        state = (state * 1103515245 + 12345) % 2147483648
        numbers[i] = state
    end
    table.sort(numbers)
    emit(numbers[n])
    local strings = {}
    for i = 1, #numbers do
        strings[i] = tostring(numbers[i])
    end
    table.sort(strings)
    emit(strings[n])
end

for name, size in arg[1]:gmatch("(%a+)(%d+)") do
    programs[name](tonumber(size))
end
return table.concat(results, ",")
