// What the author of a flow wrote for the person who answers. It may be anything; a few habits are understood.

/** The question in words, if there is one. */
export function questionOf(prompt: unknown): string {
  if (typeof prompt === 'string') return prompt;
  if (typeof prompt !== 'object' || prompt === null) return '';
  const { question, title, message, text } = prompt as Record<string, unknown>;
  return [question, title, message, text].find((words): words is string => typeof words === 'string') ?? '';
}

/** An answer to begin with: the example of the prompt, else a plain yes. */
export function suggestedAnswer(prompt: unknown): unknown {
  if (typeof prompt === 'object' && prompt !== null && 'answer' in prompt) return prompt.answer;
  return { approved: true };
}
