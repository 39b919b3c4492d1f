/**
 * unsubscribe-texts - what the unsubscribe page says, in the languages that it knows, and which of them a reader wants
 */

/** What a page says. `%` in `ask` is who the mail was from. */
export interface PageTexts {
  readonly title: string
  readonly ask: string
  readonly askAnybody: string
  readonly unsubscribe: string
  readonly undo: string
  readonly clicked: string
  readonly listed: string
  readonly undone: string
  readonly late: string
  readonly gone: string
  readonly forged: string
  readonly unavailable: string
}

export const LANGUAGES = ['en', 'de', 'fr', 'es', 'it', 'pt', 'nl'] as const
export type Language = (typeof LANGUAGES)[number]

/** Ranges of an Accept-Language that are looked at. */
const RANGES_MAX = 20

export const PAGE_TEXTS: Readonly<Record<Language, PageTexts>> = {
  en: {
    title: 'Unsubscribe',
    ask: 'Do you want to unsubscribe from these emails of %?',
    askAnybody: 'Do you want to unsubscribe from these emails?',
    unsubscribe: 'Unsubscribe',
    undo: 'Undo',
    clicked: 'You are unsubscribed. For one minute you can undo it.',
    listed: 'You are unsubscribed.',
    undone: 'You stay subscribed.',
    late: 'It is too late to undo this here: you are unsubscribed. Ask the sender if you want these emails again.',
    gone: 'This link is too old. Use the link in a newer email.',
    forged: 'This link is not valid. Open it from the email once more: it may have been cut off.',
    unavailable: 'This is not possible at the moment. Try again in a few minutes.',
  },
  de: {
    title: 'Abmelden',
    ask: 'Möchten Sie diese E-Mails von % abbestellen?',
    askAnybody: 'Möchten Sie diese E-Mails abbestellen?',
    unsubscribe: 'Abbestellen',
    undo: 'Rückgängig machen',
    clicked: 'Sie sind abgemeldet. Eine Minute lang können Sie das rückgängig machen.',
    listed: 'Sie sind abgemeldet.',
    undone: 'Sie bleiben angemeldet.',
    late: 'Hier lässt sich das nicht mehr rückgängig machen: Sie sind abgemeldet. Wenden Sie sich an den Absender, wenn Sie diese E-Mails wieder möchten.',
    gone: 'Dieser Link ist zu alt. Verwenden Sie den Link in einer neueren E-Mail.',
    forged: 'Dieser Link ist ungültig. Öffnen Sie ihn noch einmal aus der E-Mail: Vielleicht wurde er abgeschnitten.',
    unavailable: 'Das ist im Moment nicht möglich. Versuchen Sie es in einigen Minuten noch einmal.',
  },
  fr: {
    title: 'Se désabonner',
    ask: 'Voulez-vous vous désabonner de ces e-mails de % ?',
    askAnybody: 'Voulez-vous vous désabonner de ces e-mails ?',
    unsubscribe: 'Se désabonner',
    undo: 'Annuler',
    clicked: 'Vous êtes désabonné. Vous pouvez l’annuler pendant une minute.',
    listed: 'Vous êtes désabonné.',
    undone: 'Vous restez abonné.',
    late: 'Il est trop tard pour l’annuler ici : vous êtes désabonné. Adressez-vous à l’expéditeur si vous voulez de nouveau ces e-mails.',
    gone: 'Ce lien est trop ancien. Utilisez le lien d’un e-mail plus récent.',
    forged: 'Ce lien n’est pas valide. Ouvrez-le de nouveau depuis l’e-mail : il a peut-être été coupé.',
    unavailable: 'Ce n’est pas possible pour le moment. Réessayez dans quelques minutes.',
  },
  es: {
    title: 'Darse de baja',
    ask: '¿Quiere darse de baja de estos correos de %?',
    askAnybody: '¿Quiere darse de baja de estos correos?',
    unsubscribe: 'Darse de baja',
    undo: 'Deshacer',
    clicked: 'Se ha dado de baja. Puede deshacerlo durante un minuto.',
    listed: 'Se ha dado de baja.',
    undone: 'Sigue suscrito.',
    late: 'Ya no se puede deshacer aquí: se ha dado de baja. Diríjase al remitente si quiere recibir de nuevo estos correos.',
    gone: 'Este enlace es demasiado antiguo. Use el enlace de un correo más reciente.',
    forged: 'Este enlace no es válido. Ábralo otra vez desde el correo: puede que se haya cortado.',
    unavailable: 'No es posible en este momento. Inténtelo de nuevo dentro de unos minutos.',
  },
  it: {
    title: 'Annulla l’iscrizione',
    ask: 'Vuole annullare l’iscrizione a queste e-mail di %?',
    askAnybody: 'Vuole annullare l’iscrizione a queste e-mail?',
    unsubscribe: 'Annulla l’iscrizione',
    undo: 'Ripristina',
    clicked: 'La Sua iscrizione è annullata. Può ripristinarla per un minuto.',
    listed: 'La Sua iscrizione è annullata.',
    undone: 'La Sua iscrizione resta attiva.',
    late: 'È troppo tardi per ripristinarla qui: la Sua iscrizione è annullata. Si rivolga al mittente se desidera di nuovo queste e-mail.',
    gone: 'Questo link è troppo vecchio. Usi il link di un’e-mail più recente.',
    forged: 'Questo link non è valido. Lo apra di nuovo dall’e-mail: forse è stato troncato.',
    unavailable: 'Al momento non è possibile. Riprovi tra qualche minuto.',
  },
  pt: {
    title: 'Cancelar a subscrição',
    ask: 'Quer cancelar a subscrição destes e-mails de %?',
    askAnybody: 'Quer cancelar a subscrição destes e-mails?',
    unsubscribe: 'Cancelar a subscrição',
    undo: 'Desfazer',
    clicked: 'A subscrição foi cancelada. Pode desfazer durante um minuto.',
    listed: 'A subscrição foi cancelada.',
    undone: 'A subscrição mantém-se.',
    late: 'Já não é possível desfazer aqui: a subscrição foi cancelada. Contacte o remetente se quiser receber de novo estes e-mails.',
    gone: 'Esta ligação é demasiado antiga. Use a ligação de um e-mail mais recente.',
    forged: 'Esta ligação não é válida. Abra-a de novo a partir do e-mail: pode ter sido cortada.',
    unavailable: 'Não é possível neste momento. Tente de novo dentro de alguns minutos.',
  },
  nl: {
    title: 'Afmelden',
    ask: 'Wilt u zich afmelden voor deze e-mails van %?',
    askAnybody: 'Wilt u zich afmelden voor deze e-mails?',
    unsubscribe: 'Afmelden',
    undo: 'Ongedaan maken',
    clicked: 'U bent afgemeld. U kunt dit een minuut lang ongedaan maken.',
    listed: 'U bent afgemeld.',
    undone: 'U blijft aangemeld.',
    late: 'Dit kan hier niet meer ongedaan worden gemaakt: u bent afgemeld. Neem contact op met de afzender als u deze e-mails weer wilt.',
    gone: 'Deze link is te oud. Gebruik de link in een nieuwere e-mail.',
    forged: 'Deze link is niet geldig. Open hem nog eens vanuit de e-mail: misschien is hij afgekapt.',
    unavailable: 'Dit is op dit moment niet mogelijk. Probeer het over een paar minuten opnieuw.',
  },
}

/** The language that a reader likes best of those known (RFC 9110 12.5.4); English where none is. */
export function chooseLanguage(acceptLanguage: string): Language {
  let best: Language = 'en'
  let bestWeight = 0
  for (const range of acceptLanguage.split(',', RANGES_MAX)) {
    const [tag = '', ...parameters] = range.trim().toLowerCase().split(';')
    const language = LANGUAGES.find((known) => known === tag.split('-')[0])
    const weight = weightOf(parameters)
    if (language === undefined || weight <= bestWeight) continue
    best = language
    bestWeight = weight
  }
  return best
}

/** RFC 9110 12.4.2: absent means 1; what is no number means that the range is not wanted. */
function weightOf(parameters: readonly string[]): number {
  const given = parameters
    .map((one) => /^\s*q=([01](?:\.\d{0,3})?)\s*$/.exec(one)?.[1])
    .find((one) => one !== undefined)
  if (parameters.length === 0) return 1
  return given === undefined ? 0 : Math.min(1, Number(given))
}
