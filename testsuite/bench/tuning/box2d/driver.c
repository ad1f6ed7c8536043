/*
 * box2d: lets bodies fall, roll and hang, and sums where they come to be.
 *
 * usage: box2d SCENE SEED SIZE STEPS      SCENE: pyramid, mixed (circles, capsules, polygons in a bowl), joints
 */
#include "bench.h"
#include "box2d/box2d.h"

static struct random source;
static float pseudo(void)
{
    return (float)(next_random(&source) >> 40) / 16777216.0f;
}

int main(int argc, char **argv)
{
    if (argc != 5)
        die("usage: box2d SCENE SEED SIZE STEPS");
    source.state = parse_number(argv[2]) * 2 + 1;
    int size = (int)parse_number(argv[3]), steps = (int)parse_number(argv[4]);
    b2WorldDef definition = b2DefaultWorldDef();
    definition.enableSleep = false;
    b2WorldId world = b2CreateWorld(&definition);
    b2BodyDef ground_definition = b2DefaultBodyDef();
    b2BodyId ground = b2CreateBody(world, &ground_definition);
    b2ShapeDef shape = b2DefaultShapeDef();
    b2Polygon floor = b2MakeOffsetBox(200, 1, (b2Vec2){0, -1}, b2MakeRot(0));
    b2CreatePolygonShape(ground, &shape, &floor);
    for (int side = -1; side <= 1; side += 2) {
        b2Polygon wall = b2MakeOffsetBox(1, 200, (b2Vec2){(float)side * (float)(size + 3), 200}, b2MakeRot(0));
        b2CreatePolygonShape(ground, &shape, &wall);
    }
    int capacity = size * size + size, count = 0;
    b2BodyId *bodies = allocate((size_t)capacity * sizeof *bodies);
    for (int y = 0; y < size; y++)
        for (int x = 0; x < (strcmp(argv[1], "pyramid") ? size : size - y); x++) {
            b2BodyDef body = b2DefaultBodyDef();
            body.type = b2_dynamicBody;
            body.position = (b2Vec2){((float)x - (float)(size - (strcmp(argv[1], "pyramid") ? 0 : y)) / 2) * 1.1f + (strcmp(argv[1], "mixed") ? 0 : pseudo() * .2f), .5f + (float)y * 1.02f};
            if (!strcmp(argv[1], "joints"))
                body.position.y = 10 + (float)(size - y);
            b2BodyId id = bodies[count++] = b2CreateBody(world, &body);
            int kind = strcmp(argv[1], "mixed") ? 0 : (int)(pseudo() * 4);
            if (kind == 1) {
                b2Circle circle = {{0, 0}, .3f + pseudo() * .2f};
                b2CreateCircleShape(id, &shape, &circle);
            } else if (kind == 2) {
                b2Capsule capsule = {{-.2f, 0}, {.2f, 0}, .15f + pseudo() * .1f};
                b2CreateCapsuleShape(id, &shape, &capsule);
            } else if (kind == 3) {
                b2Vec2 points[6] = {{-.4f, -.3f}, {.4f, -.3f}, {.45f, .1f}, {.1f, .45f}, {-.3f, .4f}, {-.45f, 0}};
                b2Hull hull = b2ComputeHull(points, 6);
                b2Polygon polygon = b2MakePolygon(&hull, 0);
                b2CreatePolygonShape(id, &shape, &polygon);
            } else {
                b2Polygon box = strcmp(argv[1], "joints") ? b2MakeBox(.5f, .5f) : b2MakeBox(.2f, .2f);
                b2CreatePolygonShape(id, &shape, &box);
            }
            if (!strcmp(argv[1], "joints"))
                for (int to = 0; to < 2; to++) {
                    if (to ? y == 0 : x == 0)
                        continue;
                    b2RevoluteJointDef joint = b2DefaultRevoluteJointDef();
                    joint.bodyIdA = to ? bodies[count - 1 - size] : bodies[count - 2];
                    joint.bodyIdB = id;
                    joint.localAnchorA = to ? (b2Vec2){0, -.5f} : (b2Vec2){.55f, 0};
                    joint.localAnchorB = to ? (b2Vec2){0, .5f} : (b2Vec2){-.55f, 0};
                    b2CreateRevoluteJoint(world, &joint);
                }
        }
    checksum_t sum = CHECKSUM_START;
    for (int step = 0; step < steps; step++)
        b2World_Step(world, 1.0f / 60, 4);
    for (int i = 0; i < count; i++) {
        b2Vec2 at = b2Body_GetPosition(bodies[i]);
        sum = checksum_bytes(sum, &at, sizeof at);
    }
    b2DestroyWorld(world);
    print_checksum(sum);
    return 0;
}
