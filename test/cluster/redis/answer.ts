/** answer - what the errors of a store mean for a commit. */
import t from 'tap'
import { parseVerdict } from '../../../cluster/redis/answer.ts'

const of = (message: string, isOfCluster: boolean) => parseVerdict({ kind: 'error', message }, isOfCluster)

t.test('answer: in a cluster who has no replica yet is away, alone it refuses', async (t) => {
  for (const word of ['READONLY', 'LOADING', 'NOREPLICAS', 'MASTERDOWN']) {
    t.same(of(`${word} and why`, true), { kind: 'away', reason: word })
    t.same(of(`${word} and why`, false), { kind: 'refused', reason: word })
  }
})

t.test('answer: moving slots are unavailable, a full store refuses, an internal failure is torn', async (t) => {
  for (const word of ['MOVED', 'ASK', 'TRYAGAIN', 'CLUSTERDOWN'])
    t.same(of(`${word} 1 a:1`, false), { kind: 'away', reason: word })
  for (const isOfCluster of [true, false]) {
    t.same(of('OOM command not allowed', isOfCluster), { kind: 'refused', reason: 'OOM' })
    t.equal(of('READONLY You can not write script: f_1, on @user_script:3.', isOfCluster).kind, 'torn')
  }
})
