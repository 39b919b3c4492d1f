/** next-step - the step after a password or a link: the dashboard, or the second factor */
import type { VNode } from 'preact'
import { useState } from 'preact/hooks'
import type { SecondFactor, SignedIn } from '../../../../schemas/dashboard/session.ts'
import { goIn } from './doorway.tsx'

export type SignInAnswer = SignedIn | SecondFactor

/** Returns the page of the second factor if one is required, and a function that continues with an answer. */
export function useSecondStep(): [step: VNode | null, goOn: (answer: SignInAnswer) => Promise<void>] {
  const [step, setStep] = useState<VNode | null>(null)
  const goOn = async (answer: SignInAnswer) => {
    if (!('secondFactor' in answer)) return goIn(answer)
    // Its code comes to those who have one.
    const { SecondStepPage } = await import('./second-step.tsx')
    setStep(<SecondStepPage factor={answer} />)
  }
  return [step, goOn]
}
