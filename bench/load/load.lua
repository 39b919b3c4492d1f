-- load - the requests of wrk: key n and address n in turn, the same for every contestant.
--
-- Arguments: file of keys, file of the body with ###### in it, number of addresses.

local heads, first, last, addresses = {}, '', '', 0
local n = -1

function init(args)
  local file = io.open(args[2], 'r')
  local body = file:read('*a')
  file:close()
  local from, to = body:find('######', 1, true)
  first, last = body:sub(1, from - 1), body:sub(to + 1)
  addresses = tonumber(args[3])
  for key in io.lines(args[1]) do
    heads[#heads + 1] = 'POST /v1/email HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ' .. key ..
      '\r\nContent-Type: application/json\r\nContent-Length: ' .. #body .. '\r\n\r\n' .. first
  end
end

function request()
  n = n + 1
  return heads[n % #heads + 1] .. string.format('%06d', n % addresses) .. last
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\nRESULT {"requests":%d,"refused":%d,"broken":%d,"microseconds":%d,"p50Us":%d,"p99Us":%d}\n',
    summary.requests, errors.status, errors.connect + errors.read + errors.write + errors.timeout,
    summary.duration, latency:percentile(50), latency:percentile(99)))
end
