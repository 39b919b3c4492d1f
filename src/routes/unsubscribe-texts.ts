/**
 * unsubscribe-texts - the texts of the unsubscribe page in seven languages, and the choice of a reader's language
 */

/** The texts of one language. `%` in `ask` is replaced by the sender's name or address. */
export interface PageTexts {
  readonly title: string
  readonly ask: string
  readonly askNoSender: string
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

/** Ranges of an Accept-Language that are read. */
const RANGES_MAX = 20

export const PAGE_TEXTS: Readonly<Record<Language, PageTexts>> = {
  en: {
    title: 'Unsubscribe',
    ask: 'Do you want to stop receiving these emails from %?',
    askNoSender: 'Do you want to stop receiving these emails?',
    unsubscribe: 'Unsubscribe',
    undo: 'Undo',
    clicked: 'You are unsubscribed. You can undo this for one minute.',
    listed: 'You are unsubscribed.',
    undone: 'You are still subscribed.',
    late: 'It is too late to undo this here. You are unsubscribed. To get these emails again, contact the sender.',
    gone: 'This link has expired. Use the link in a more recent email.',
    forged: 'This link is not valid. Open it from the email again. It may have been cut off.',
    unavailable: 'This is not available right now. Try again in a few minutes.',
  },
  de: {
    title: 'Abmelden',
    ask: 'Möchten Sie diese E-Mails von % abbestellen?',
    askNoSender: 'Möchten Sie diese E-Mails abbestellen?',
    unsubscribe: 'Abbestellen',
    undo: 'Rückgängig machen',
    clicked: 'Sie sind abgemeldet. Sie können dies eine Minute lang rückgängig machen.',
    listed: 'Sie sind abgemeldet.',
    undone: 'Sie bleiben angemeldet.',
    late: 'Die Abmeldung lässt sich hier nicht mehr rückgängig machen. Wenn Sie diese E-Mails wieder erhalten möchten, wenden Sie sich an den Absender.',
    gone: 'Dieser Link ist abgelaufen. Verwenden Sie den Link in einer neueren E-Mail.',
    forged: 'Dieser Link ist ungültig. Öffnen Sie ihn noch einmal aus der E-Mail. Vielleicht wurde er abgeschnitten.',
    unavailable: 'Das ist im Moment nicht möglich. Versuchen Sie es in einigen Minuten noch einmal.',
  },
  fr: {
    title: 'Se désabonner',
    ask: 'Souhaitez-vous ne plus recevoir ces e-mails de %\u00a0?',
    askNoSender: 'Souhaitez-vous ne plus recevoir ces e-mails\u00a0?',
    unsubscribe: 'Se désabonner',
    undo: 'Annuler',
    clicked: 'Votre désabonnement est enregistré. Vous pouvez l’annuler pendant une minute.',
    listed: 'Votre désabonnement est enregistré.',
    undone: 'Votre abonnement est maintenu.',
    late: 'Il est trop tard pour annuler ici. Votre désabonnement est enregistré. Pour recevoir de nouveau ces e-mails, contactez l’expéditeur.',
    gone: 'Ce lien a expiré. Utilisez le lien d’un e-mail plus récent.',
    forged: 'Ce lien n’est pas valide. Ouvrez-le de nouveau depuis l’e-mail. Il a peut-être été tronqué.',
    unavailable: 'Cette opération est impossible pour le moment. Réessayez dans quelques minutes.',
  },
  es: {
    title: 'Darse de baja',
    ask: '¿Quiere dejar de recibir estos correos de %?',
    askNoSender: '¿Quiere dejar de recibir estos correos?',
    unsubscribe: 'Darse de baja',
    undo: 'Deshacer',
    clicked: 'Se ha dado de baja. Puede deshacerlo durante un minuto.',
    listed: 'Se ha dado de baja.',
    undone: 'Su suscripción sigue activa.',
    late: 'Ya no se puede deshacer aquí. Se ha dado de baja. Para volver a recibir estos correos, póngase en contacto con el remitente.',
    gone: 'Este enlace ha caducado. Use el enlace de un correo más reciente.',
    forged: 'Este enlace no es válido. Ábralo otra vez desde el correo. Es posible que se haya cortado.',
    unavailable: 'No es posible en este momento. Inténtelo de nuevo en unos minutos.',
  },
  it: {
    title: 'Annulla iscrizione',
    ask: 'Non vuole più ricevere queste e-mail da %?',
    askNoSender: 'Non vuole più ricevere queste e-mail?',
    unsubscribe: 'Annulla iscrizione',
    undo: 'Ripristina',
    clicked: 'L’iscrizione è stata annullata. Ha un minuto per ripristinarla.',
    listed: 'L’iscrizione è stata annullata.',
    undone: 'L’iscrizione resta attiva.',
    late: 'È troppo tardi per ripristinarla qui. L’iscrizione è stata annullata. Per ricevere di nuovo queste e-mail, contatti il mittente.',
    gone: 'Questo link è scaduto. Usi il link di un’e-mail più recente.',
    forged: 'Questo link non è valido. Lo apra di nuovo dall’e-mail. Forse è stato troncato.',
    unavailable: 'Al momento non è possibile. Riprovi tra qualche minuto.',
  },
  // Words that readers in Portugal and in Brazil both use.
  pt: {
    title: 'Deixar de receber e-mails',
    ask: 'Quer deixar de receber estes e-mails de %?',
    askNoSender: 'Quer deixar de receber estes e-mails?',
    unsubscribe: 'Deixar de receber',
    undo: 'Desfazer',
    clicked: 'O envio destes e-mails foi cancelado. Pode desfazer durante um minuto.',
    listed: 'O envio destes e-mails foi cancelado.',
    undone: 'O envio destes e-mails continua.',
    late: 'Já não é possível desfazer aqui. O envio destes e-mails foi cancelado. Para os receber de novo, fale com o remetente.',
    gone: 'Este link expirou. Use o link de um e-mail mais recente.',
    forged: 'Este link não é válido. Abra-o de novo a partir do e-mail. Pode ter sido cortado.',
    unavailable: 'Não é possível neste momento. Tente de novo dentro de alguns minutos.',
  },
  nl: {
    title: 'Afmelden',
    ask: 'Wilt u deze e-mails van % niet meer ontvangen?',
    askNoSender: 'Wilt u deze e-mails niet meer ontvangen?',
    unsubscribe: 'Afmelden',
    undo: 'Ongedaan maken',
    clicked: 'U bent afgemeld. U kunt dit een minuut lang ongedaan maken.',
    listed: 'U bent afgemeld.',
    undone: 'U blijft aangemeld.',
    late: 'Dit kan hier niet meer ongedaan worden gemaakt. U bent afgemeld. Neem contact op met de afzender als u deze e-mails weer wilt ontvangen.',
    gone: 'Deze link is verlopen. Gebruik de link in een recentere e-mail.',
    forged: 'Deze link is niet geldig. Open hem nog eens vanuit de e-mail. Mogelijk is hij afgekapt.',
    unavailable: 'Dit is op dit moment niet mogelijk. Probeer het over een paar minuten opnieuw.',
  },
}

/** The known language with the highest weight in an Accept-Language (RFC 9110 12.5.4), or English. */
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

/** The weight of a range (RFC 9110 12.4.2). An absent one is 1; a malformed one is 0, which excludes the range. */
function weightOf(parameters: readonly string[]): number {
  const given = parameters
    .map((one) => /^\s*q=([01](?:\.\d{0,3})?)\s*$/.exec(one)?.[1])
    .find((one) => one !== undefined)
  if (parameters.length === 0) return 1
  return given === undefined ? 0 : Math.min(1, Number(given))
}
