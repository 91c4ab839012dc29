import { describe, expect, it } from 'vitest';
import type { Plan, PlanNode } from '../src/api/types';
import { layOut, type Box } from '../src/run/layout';
import { draw, foldedAtFirst } from '../src/run/tree';

const node = (id: string, parent: string | null = null, kind = 'Task'): PlanNode => ({
  id, name: id, kind, task: id, parent, status: 'PENDING', attempt: 0, started_at: null, ended_at: null,
});
const plan = (nodes: PlanNode[], edges: [string, string][]): Plan => ({
  run_id: 'r', flow_name: 'f', version: 1, nodes, edges: edges.map(([from, to]) => ({ from, to })), is_truncated: false,
});

const loop = plan(
  [node('a'), node('loop', null, 'Repeat'), node('loop/1/b', 'loop'), node('loop/2/b', 'loop'), node('c')],
  [['a', 'loop'], ['loop/1/b', 'loop/2/b'], ['loop', 'c'], ['loop/2/b', 'c']],
);

const overlap = (a: Box, b: Box) => a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;

describe('the drawing', () => {
  it('has everything when nothing is folded', () => {
    const drawing = draw(loop, new Set());
    expect(drawing.nodes.map((one) => one.node.id)).toEqual(['a', 'loop', 'loop/1/b', 'loop/2/b', 'c']);
    expect(drawing.edges).toHaveLength(4);
  });

  it('lets a folded node stand for what it holds, with one edge instead of many', () => {
    const drawing = draw(loop, new Set(['loop']));
    expect(drawing.nodes.map((one) => one.node.id)).toEqual(['a', 'loop', 'c']);
    expect(drawing.edges.map((edge) => `${edge.from} ${edge.to}`)).toEqual(['a loop', 'loop c']);
    expect(drawing.nodes[1]).toMatchObject({ inside: 2, isFolded: true, statuses: { PENDING: 2 } });
  });

  it('leads from the ends of a round to the beginnings of the next', () => {
    const inRound = (round: number) => ['b', 'c', 'd'].map((name) => ({ ...node(`loop/${round}/${name}`, 'loop'), round }));
    const rounds = plan([node('loop', null, 'Repeat'), ...inRound(1), ...inRound(2), ...inRound(3)], [1, 2, 3].map((n) => [`loop/${n}/b`, `loop/${n}/c`]));
    const lines = draw(rounds, new Set()).edges.filter((edge) => edge.isRound).map((edge) => `${edge.from} ${edge.to}`);
    expect(lines).toEqual([
      'loop/1/c loop/2/b', 'loop/1/d loop/2/b', 'loop/1/c loop/2/d',
      'loop/2/c loop/3/b', 'loop/2/d loop/3/b', 'loop/2/c loop/3/d',
    ]);
    expect(draw(rounds, new Set(['loop'])).edges).toEqual([]);
  });

  it('says of what was never opened that it was not reached', () => {
    const closed = plan([node('switch', null, 'Switch'), { ...node('switch~0/a', 'switch'), status: null, case: '"x"' }], []);
    expect(draw(closed, new Set()).nodes[0]?.statuses).toEqual({ NOT_REACHED: 1 });
  });

  it('loses no node whose parent is not there, or is itself', () => {
    const odd = plan([node('x', 'gone'), node('y', 'y')], []);
    expect(draw(odd, new Set()).nodes.map((one) => one.node.id)).toEqual(['x', 'y']);
  });

  it('begins with large loops folded, if there is much', () => {
    const rounds = Array.from({ length: 300 }, (_, n) => node(`loop/${n}/b`, 'loop'));
    expect([...foldedAtFirst(plan([node('loop', null, 'ForEach'), ...rounds], []))]).toEqual(['loop']);
    expect(foldedAtFirst(loop).size).toBe(0);
  });
});

describe('the layout', () => {
  it('puts what follows to the right, and what is held inside', () => {
    const boxes = layOut(draw(loop, new Set()));
    const at = (id: string) => boxes.get(id) ?? { x: -1, y: -1, width: 0, height: 0 };
    expect(at('a').x + at('a').width).toBeLessThan(at('loop').x);
    expect(at('loop').x + at('loop').width).toBeLessThan(at('c').x);
    for (const id of ['loop/1/b', 'loop/2/b']) {
      expect(at(id).x).toBeGreaterThanOrEqual(0);
      expect(at(id).x + at(id).width).toBeLessThanOrEqual(at('loop').width);
      expect(at(id).y + at(id).height).toBeLessThanOrEqual(at('loop').height);
    }
    expect(overlap(at('loop/1/b'), at('loop/2/b'))).toBe(false);
  });

  // How long it takes is measured in a browser (e2e).
  it('of 400 nodes lets none cover another', () => {
    const nodes: PlanNode[] = [];
    const edges: [string, string][] = [];
    for (let layer = 0; layer < 40; layer += 1) {
      for (let row = 0; row < 10; row += 1) {
        nodes.push(node(`n${layer}-${row}`));
        if (layer > 0) edges.push([`n${layer - 1}-${row}`, `n${layer}-${row}`], [`n${layer - 1}-${(row * 7 + layer) % 10}`, `n${layer}-${row}`]);
      }
    }
    const boxes = [...layOut(draw(plan(nodes, edges), new Set())).values()];
    expect(boxes).toHaveLength(400);
    const covered = boxes.filter((box, index) => boxes.slice(index + 1).some((other) => overlap(box, other)));
    expect(covered).toEqual([]);
  });

  it('bears a cycle and nodes without edges', () => {
    const odd = plan([node('a'), node('b'), node('alone')], [['a', 'b'], ['b', 'a']]);
    expect(layOut(draw(odd, new Set())).size).toBe(3);
  });
});
