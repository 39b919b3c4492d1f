/** redis-log - the log file of a running Redis is started again, and its next lines are in the new file. */
import { closeSync, openSync, readFileSync, statSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { boundRedisLog, openRedisLog } from '../../../cluster/embedded/redis-log.ts'

t.test('redis-log: below its bound it is left alone', (t) => {
  const folder = t.testdir({ 'redis.log': 'said\n' })
  t.equal(boundRedisLog(folder, 5), false)
  t.equal(boundRedisLog(t.testdir({}), 5), false, 'nor where there is none')
  t.end()
})

t.test('redis-log: the previous contents are kept once, and writers continue at the beginning', (t) => {
  const folder = t.testdir({ 'redis.log': 'old\n', 'redis.log.1': 'older\n' })
  const file = openRedisLog(folder)
  writeSync(file, 'and more\n')
  t.equal(boundRedisLog(folder, 5), true)
  writeSync(file, 'new\n')
  closeSync(file)
  t.equal(readFileSync(join(folder, 'redis.log'), 'utf8'), 'new\n')
  t.equal(readFileSync(join(folder, 'redis.log.1'), 'utf8'), 'old\nand more\n')
  t.end()
})

t.test('redis-log: a start does not continue a file beyond its bound', (t) => {
  const folder = t.testdir({})
  const path = join(folder, 'redis.log')
  writeFileSync(path, 'x')
  const file = openSync(path, 'r+')
  writeSync(file, 'y', 11 * 1024 * 1024)
  closeSync(file)
  closeSync(openRedisLog(folder))
  t.equal(statSync(path).size, 0)
  t.equal(statSync(`${path}.1`).size, 11 * 1024 * 1024 + 1)
  t.end()
})
