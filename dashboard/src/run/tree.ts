// The plan as a tree of nodes in nodes, and which part of it is drawn: what is inside a folded node is not.
import type { Plan, PlanNode } from '../api/types';

/** A plan with more nodes than this begins with its large loops folded. */
const LARGE_PLAN = 150;
const LARGE_LOOP = 12;

export interface DrawnNode {
  node: PlanNode;
  /** The drawn node that holds it. */
  parent: string | null;
  /** How many nodes are inside it, at any depth; 0 if it holds none. */
  inside: number;
  isFolded: boolean;
  /** Of those inside: how many are in each status. */
  statuses: Record<string, number>;
}

export interface DrawnEdge {
  from: string;
  to: string;
  /** It leads from one round of a loop to the next. */
  isRound: boolean;
}

export interface Drawing {
  nodes: DrawnNode[];
  edges: DrawnEdge[];
}

/** What stands in a loop or switch that was never opened has no state. */
export const statusOf = (node: PlanNode): string => node.status ?? 'NOT_REACHED';

function childrenOf(plan: Plan): Map<string | null, PlanNode[]> {
  const ids = new Set(plan.nodes.map((node) => node.id));
  const children = new Map<string | null, PlanNode[]>();
  for (const node of plan.nodes) {
    // A parent that is not in the plan, or that is the node itself, counts as none: nothing may get lost.
    const parent = node.parent != null && node.parent !== node.id && ids.has(node.parent) ? node.parent : null;
    const siblings = children.get(parent);
    if (siblings) siblings.push(node);
    else children.set(parent, [node]);
  }
  return children;
}

/** From the ends of each round of a loop to the beginnings of the next. The plan does not name them, but a reader follows them. */
function betweenRounds(plan: Plan): DrawnEdge[] {
  const hasNext = new Set(plan.edges.map((edge) => edge.from));
  const hasPrevious = new Set(plan.edges.map((edge) => edge.to));
  const loops = new Map<string, Map<number, PlanNode[]>>();
  for (const node of plan.nodes) {
    if (node.parent == null || node.round == null) continue;
    const rounds = loops.get(node.parent) ?? new Map<number, PlanNode[]>();
    loops.set(node.parent, rounds.set(node.round, [...(rounds.get(node.round) ?? []), node]));
  }
  const edges: DrawnEdge[] = [];
  for (const rounds of loops.values()) {
    for (const [round, nodes] of rounds) {
      const ends = nodes.filter((node) => !hasNext.has(node.id));
      const starts = (rounds.get(round + 1) ?? []).filter((node) => !hasPrevious.has(node.id));
      const [end, start] = [ends[0], starts[0]];
      if (!end || !start) continue;
      // One of them leads to all, and all to one: each with each would be a thicket.
      for (const { id } of ends) edges.push({ from: id, to: start.id, isRound: true });
      for (const { id } of starts.slice(1)) edges.push({ from: end.id, to: id, isRound: true });
    }
  }
  return edges;
}

/** The nodes that begin folded. */
export function foldedAtFirst(plan: Plan): Set<string> {
  if (plan.nodes.length <= LARGE_PLAN) return new Set();
  const children = childrenOf(plan);
  return new Set(plan.nodes.filter((node) => (children.get(node.id)?.length ?? 0) > LARGE_LOOP).map((node) => node.id));
}

export const holdersOf = (plan: Plan): string[] =>
  [...childrenOf(plan).keys()].filter((id): id is string => id !== null);

export function draw(plan: Plan, folded: ReadonlySet<string>): Drawing {
  const children = childrenOf(plan);
  const nodes: DrawnNode[] = [];
  /** For each node the drawn one that stands for it: itself, or the folded one around it. */
  const stands = new Map<string, string>();

  function count(id: string, statuses: Record<string, number>): number {
    let all = 0;
    for (const child of children.get(id) ?? []) {
      const status = statusOf(child);
      statuses[status] = (statuses[status] ?? 0) + 1;
      all += 1 + count(child.id, statuses);
    }
    return all;
  }

  function visit(parent: string | null, cover: string | null): void {
    for (const node of children.get(parent) ?? []) {
      stands.set(node.id, cover ?? node.id);
      let inner = cover;
      if (cover === null) {
        const statuses: Record<string, number> = {};
        const inside = count(node.id, statuses);
        const isFolded = inside > 0 && folded.has(node.id);
        nodes.push({ node, parent, inside, isFolded, statuses });
        if (isFolded) inner = node.id;
      }
      visit(node.id, inner);
    }
  }
  visit(null, null);

  const edges: DrawnEdge[] = [];
  const drawn = new Set<string>();
  const inBlocks = plan.edges.map((edge) => ({ ...edge, isRound: false }));
  for (const edge of [...inBlocks, ...betweenRounds(plan)]) {
    const from = stands.get(edge.from);
    const to = stands.get(edge.to);
    if (from === undefined || to === undefined || from === to) continue;
    const name = JSON.stringify([from, to]);
    if (drawn.has(name)) continue;
    drawn.add(name);
    edges.push({ from, to, isRound: edge.isRound });
  }
  return { nodes, edges };
}
